"""Diagnostic captures: one request's content, kept because its caller asked for it.

``x-svc-diagnostic-capture`` on a chat request keeps the body as it was sent to the backend and the
backend's whole answer, encrypted (Fernet: AES-128-CBC with HMAC-SHA256), for
``SVC_CAPTURE_HOURS``. Operators read them in the admin; each reading is recorded.

The content of failed requests is kept likewise, in a table of its own, where an organization's owner
wants that, for so many hours; owners read it in the console.

The captures of an organization are bounded: ``SVC_CAPTURE_BYTES`` of each side of a request, a
number of requests an hour, and a number of bytes in all. A request beyond a bound is served but not
captured; ``svc_captures`` counts it, because the contract has no header for it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from django.conf import settings
from django.db import Error
from django.db.models import Count, Q, Sum
from django.db.models.functions import Length

from accounts.keys.principal import Principal
from core.clock import now
from core.database.threads import WRITE_SECONDS, DatabaseThreads
from core.errors import InternalError, ServerOverloaded
from core.sealing import Cipher
from core.sharing.places import Share
from inference.chat import metrics
from inference.models.captures import DiagnosticCapture, FailedContent, SealedContent
from inference.wire.request import ChatRequest

log = logging.getLogger(__name__)

_HOUR = timedelta(hours=1)
_ASK_AGAIN_SECONDS = 10.0

thread = DatabaseThreads("captures", 1)
"""Stores captures one at a time, so that they cannot hold up other work on the database."""
_waiting = Share(8, 2)
"""Captures that the thread has not stored yet, and those of one organization."""
_full: dict[tuple[type[SealedContent], str], tuple[float, Outcome]] = {}
"""Organizations at a bound of a kind: when the database is queried again (monotonic), and which bound."""


class Outcome(StrEnum):
    """The outcome of a capture that a request asked for, or that the owner wants of failed ones."""

    KEPT = "kept"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    FORBIDDEN = "forbidden"
    BUSY = "busy"
    FAILED = "failed"


class CapturedContent(msgspec.Struct):
    """The content of a capture, as text; bytes that are not UTF-8 are replaced.

    ``request_bytes`` and ``answer_bytes`` are the sizes before cutting; older captures, which are
    never cut, have 0.
    """

    request: str
    answer: str
    request_bytes: int = 0
    answer_bytes: int = 0
    is_cut: bool = False


def _cipher() -> Cipher:
    """The cipher of this installation's captures (``SVC_CAPTURE_KEYS``)."""
    return Cipher(settings.SVC_CAPTURE_KEYS)


@dataclass(slots=True)
class Content:
    """The bytes of an exchange; of the answer no more reads are held than have ``kept_bytes``."""

    kept_bytes: int
    sent: bytes = b""
    """The body as it was sent to the backend."""
    received: list[bytes] = field(default_factory=list)
    received_bytes: int = 0
    """The size of the whole answer."""

    def take(self, read: bytes) -> None:
        """Count the next bytes of the answer, and hold them if they are among the first."""
        if self.received_bytes < self.kept_bytes:
            self.received.append(read)
        self.received_bytes += len(read)


async def keep(request_id: str, organization_id: str, content: Content) -> None:
    """Store a capture before the answer ends; a failure to store it does not reach the caller."""
    most = settings.SVC_CAPTURE_BYTES
    captured = CapturedContent(
        _text(content.sent[:most]),
        _text(b"".join(content.received)[:most]),
        request_bytes=len(content.sent),
        answer_bytes=content.received_bytes,
        is_cut=max(len(content.sent), content.received_bytes) > most,
    )
    kept_for = timedelta(hours=settings.SVC_CAPTURE_HOURS)
    metrics.captures.add(
        await _kept(DiagnosticCapture, request_id, organization_id, captured, kept_for)
    )


async def keep_failed(
    request_id: str, principal: Principal, asked: ChatRequest, answered: str
) -> None:
    """Store what the caller asked and what a model had ``answered`` when it failed, for the owner.

    In the caller's words: names, fields and errors of model servers are not in it. Nothing of a
    request is held for this while it runs, so one that succeeds costs nothing.
    """
    most = settings.SVC_CAPTURE_BYTES
    sent, received = msgspec.json.encode(asked), answered.encode(errors="replace")
    content = CapturedContent(
        _text(sent[:most]),
        _text(received[:most]),
        request_bytes=len(sent),
        answer_bytes=len(received),
        is_cut=max(len(sent), len(received)) > most,
    )
    hours = min(principal.failed_content_hours, settings.SVC_CAPTURE_HOURS)
    organization_id, kept_for = principal.organization_id, timedelta(hours=hours)
    metrics.captures.add(await _kept(FailedContent, request_id, organization_id, content, kept_for))


def forbidden() -> None:
    """Count a capture that was refused because an operator has forbidden the organization's."""
    metrics.captures.add(Outcome.FORBIDDEN)


async def _kept(
    kind: type[SealedContent],
    request_id: str,
    organization_id: str,
    content: CapturedContent,
    kept_for: timedelta,
) -> Outcome:
    known = _full.get((kind, organization_id))
    if known is not None and time.monotonic() < known[0]:
        return known[1]
    try:
        _waiting.take(1, organization_id)
    except ServerOverloaded:
        return Outcome.BUSY
    try:
        outcome = await thread.run(
            lambda: _store(kind, request_id, organization_id, content, kept_for), WRITE_SECONDS
        )
    except InternalError:
        return Outcome.FAILED
    finally:
        _waiting.release(1, organization_id)
    _full.pop((kind, organization_id), None)
    if outcome in {Outcome.TOO_MANY, Outcome.TOO_LARGE}:
        _full[kind, organization_id] = time.monotonic() + _ASK_AGAIN_SECONDS, outcome
    return outcome


def _store(
    kind: type[SealedContent],
    request_id: str,
    organization_id: str,
    content: CapturedContent,
    kept_for: timedelta,
) -> Outcome:
    moment = now()
    try:
        sealed = _cipher().seal(msgspec.json.encode(content))
        # Workers do not lock each other out: each may exceed a bound by one capture.
        if refusal := _refusal(kind, organization_id, moment, len(sealed)):
            log.info("%s: not captured: %s", request_id, refusal)
            return refusal
        kind._default_manager.create(
            request_id=request_id,
            organization_id=organization_id,
            created_at=moment,
            expires_at=moment + kept_for,
            content=sealed,
        )
    except Error as error:
        log.error("%s: not captured: %s", request_id, type(error).__name__)
        return Outcome.FAILED
    return Outcome.KEPT


def _refusal(
    kind: type[SealedContent], organization_id: str, moment: datetime, size: int
) -> Outcome | None:
    """Return the bound that another capture of ``size`` bytes would exceed, or None."""
    kept = kind._default_manager.filter(organization_id=organization_id).order_by()
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


def reveal(capture: SealedContent) -> CapturedContent:
    """Decrypt the content of ``capture``. Raises ``Unreadable``."""
    return msgspec.json.decode(_cipher().open(bytes(capture.content)), type=CapturedContent)


def prune() -> int:
    """Delete the captures that have expired; return how many."""
    moment = now()
    return sum(
        kind.objects.filter(expires_at__lte=moment).delete()[0]
        for kind in (DiagnosticCapture, FailedContent)
    )
