"""Diagnostic captures: one request's content, kept because its caller asked for it.

``x-svc-diagnostic-capture`` on a chat request keeps the body as it was sent to the backend and the
backend's whole answer, encrypted (Fernet: AES-128-CBC with HMAC-SHA256), for
``SVC_CAPTURE_HOURS``. Operators read them in the admin; each reading is recorded.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import Error

from inference.capture_rows import DiagnosticCapture
from svc_project.lib.clock import now
from svc_project.lib.connections import keep_usable

log = logging.getLogger(__name__)

_thread = ThreadPoolExecutor(1, thread_name_prefix="captures")


class CapturedContent(msgspec.Struct):
    """What a capture holds, as text; bytes that are not UTF-8 are replaced."""

    request: str
    answer: str


class UnreadableCapture(Exception):
    """The capture was made with a key that is no longer in ``SVC_CAPTURE_KEYS``."""


def _cipher() -> MultiFernet:
    keys = [hashlib.sha256(key.encode()).digest() for key in settings.SVC_CAPTURE_KEYS]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])


async def keep(request_id: str, organization_id: str, request: bytes, answer: bytes) -> None:
    """Store a capture before the answer ends; a failure is logged and costs the caller nothing."""
    await asyncio.get_running_loop().run_in_executor(
        _thread, _store, request_id, organization_id, request, answer
    )


def _store(request_id: str, organization_id: str, request: bytes, answer: bytes) -> None:
    content = CapturedContent(request.decode(errors="replace"), answer.decode(errors="replace"))
    moment = now()
    try:
        keep_usable()
        DiagnosticCapture.objects.create(
            request_id=request_id,
            organization_id=organization_id,
            created_at=moment,
            expires_at=moment + timedelta(hours=settings.SVC_CAPTURE_HOURS),
            content=_cipher().encrypt(msgspec.json.encode(content)),
        )
    except Error as error:
        log.error("%s: not captured: %s", request_id, type(error).__name__)


def reveal(capture: DiagnosticCapture) -> CapturedContent:
    """The content of ``capture``. Raises ``UnreadableCapture``."""
    try:
        return msgspec.json.decode(_cipher().decrypt(bytes(capture.content)), type=CapturedContent)
    except InvalidToken:
        raise UnreadableCapture from None


def prune() -> int:
    """Delete the captures whose retention is over; returns how many."""
    deleted, _ = DiagnosticCapture.objects.filter(expires_at__lte=now()).delete()
    return deleted
