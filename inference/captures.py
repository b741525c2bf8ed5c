"""Diagnostic captures: one request's content, kept because its caller asked for it.

``x-svc-diagnostic-capture`` on a chat request keeps the body as it was sent to the backend and the
backend's whole answer, encrypted (Fernet: AES-128-CBC with HMAC-SHA256), for
``SVC_CAPTURE_HOURS``. Operators read them in the admin; each reading is recorded.

What is kept of an organization is bounded: ``SVC_CAPTURE_BYTES`` of either side of a request, so
many requests an hour, so many bytes in all. A request beyond a bound is served and not kept, which
is counted (``svc_captures``): the contract has no header that could say so.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import Error
from django.db.models import Count, Q, Sum
from django.db.models.functions import Length

from inference import figures
from inference.capture_rows import DiagnosticCapture
from svc_project.lib.clock import now
from svc_project.lib.connections import keep_usable

log = logging.getLogger(__name__)

_MOST_WAITING = 8
_MOST_WAITING_OF_ONE = 2
_HOUR = timedelta(hours=1)
_ASK_AGAIN_SECONDS = 10.0

_thread = ThreadPoolExecutor(1, thread_name_prefix="captures")
_waiting: Counter[str] = Counter()
"""Captures that the thread has not stored yet, by organization."""
_full: dict[str, tuple[float, Outcome]] = {}
"""Organizations that had all they may have, until when they are not asked about again, and why."""


class Outcome(StrEnum):
    """What became of a capture that a request asked for."""

    KEPT = "kept"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    FORBIDDEN = "forbidden"
    BUSY = "busy"
    FAILED = "failed"


class CapturedContent(msgspec.Struct):
    """What a capture holds, as text; bytes that are not UTF-8 are replaced.

    ``request_bytes`` and ``answer_bytes`` are what there was to keep; 0 of older captures, which are
    whole.
    """

    request: str
    answer: str
    request_bytes: int = 0
    answer_bytes: int = 0
    is_cut: bool = False


class UnreadableCapture(Exception):
    """The capture was made with a key that is no longer in ``SVC_CAPTURE_KEYS``."""


def _cipher() -> MultiFernet:
    keys = [hashlib.sha256(key.encode()).digest() for key in settings.SVC_CAPTURE_KEYS]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])


async def keep(
    request_id: str, organization_id: str, request: bytes, answer: bytes, answer_bytes: int
) -> None:
    """Store a capture before the answer ends; whatever prevents it costs the caller nothing.

    ``answer`` is as much of the answer as was held, ``answer_bytes`` the size of all of it.
    """
    most = settings.SVC_CAPTURE_BYTES
    content = CapturedContent(
        _text(request[:most]),
        _text(answer[:most]),
        request_bytes=len(request),
        answer_bytes=answer_bytes,
        is_cut=max(len(request), answer_bytes) > most,
    )
    figures.captures.add(await _kept(request_id, organization_id, content))


def forbidden() -> None:
    """Count a capture that an operator has forbidden for the organization."""
    figures.captures.add(Outcome.FORBIDDEN)


async def _kept(request_id: str, organization_id: str, content: CapturedContent) -> Outcome:
    known = _full.get(organization_id)
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    if _waiting.total() >= _MOST_WAITING or _waiting[organization_id] >= _MOST_WAITING_OF_ONE:
        return Outcome.BUSY
    _waiting[organization_id] += 1
    try:
        outcome = await asyncio.get_running_loop().run_in_executor(
            _thread, _store, request_id, organization_id, content
        )
    finally:
        _waiting[organization_id] -= 1
        if not _waiting[organization_id]:
            del _waiting[organization_id]
    _full.pop(organization_id, None)
    if outcome in {Outcome.TOO_MANY, Outcome.TOO_LARGE}:
        _full[organization_id] = time.monotonic() + _ASK_AGAIN_SECONDS, outcome
    return outcome


def _store(request_id: str, organization_id: str, content: CapturedContent) -> Outcome:
    moment = now()
    try:
        keep_usable()
        sealed = _cipher().encrypt(msgspec.json.encode(content))
        # Workers do not wait for each other: together they may pass a bound by one capture each.
        if refusal := _refusal(organization_id, moment, len(sealed)):
            log.info("%s: not captured: %s", request_id, refusal)
            return refusal
        DiagnosticCapture.objects.create(
            request_id=request_id,
            organization_id=organization_id,
            created_at=moment,
            expires_at=moment + timedelta(hours=settings.SVC_CAPTURE_HOURS),
            content=sealed,
        )
    except Error as error:
        log.error("%s: not captured: %s", request_id, type(error).__name__)
        return Outcome.FAILED
    return Outcome.KEPT


def _refusal(organization_id: str, moment: datetime, size: int) -> Outcome | None:
    """Which bound another capture of ``size`` bytes would pass."""
    kept = DiagnosticCapture.objects.filter(organization_id=organization_id).order_by()
    found = kept.aggregate(
        of_the_hour=Count("pk", filter=Q(created_at__gt=moment - _HOUR)),
        size=Sum(Length("content")),
    )
    if found["of_the_hour"] >= settings.SVC_CAPTURES_PER_HOUR:
        return Outcome.TOO_MANY
    if (found["size"] or 0) + size > settings.SVC_CAPTURE_BYTES_PER_ORGANIZATION:
        return Outcome.TOO_LARGE
    return None


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


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
