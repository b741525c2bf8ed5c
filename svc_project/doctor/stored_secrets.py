"""Whether this host has the secrets with which other hosts made what is in the database.

The database has nothing that reveals a secret, but what was made with each: fingerprints of peppers
beside keys, signatures of sessions, sealed captures and clips.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core import signing
from django.db.models import Count

from accounts.keys.keys import pepper_fingerprint, working
from core import clock
from core.sealing import Cipher, Unreadable
from inference.models import DiagnosticCapture
from speech.models import CloneAudio
from svc_project.doctor.findings import Finding, State

_SESSIONS: Final = 200
_SEALED: Final = 10
"""The most that are tried, the newest."""


def compare() -> Iterator[Finding]:
    """A fault for each setting whose secret is not that of the other hosts."""
    found = [
        each
        for setting, what, strange in (
            ("SVC_KEY_PEPPERS", "working API keys", _keys()),
            ("SECRET_KEY", "of the newest logins", _sessions()),
            ("SVC_CAPTURE_KEYS", "of the newest captures", _captures()),
            ("SVC_CLONE_KEYS", "of the newest reference clips", _clips()),
        )
        if (each := _finding(setting, what, strange)) is not None
    ]
    yield from found or [
        Finding(
            State.OK, "sameness", "what is in the database was made with the secrets of this host"
        )
    ]


def _finding(setting: str, what: str, strange: int) -> Finding | None:
    if not strange:
        return None
    return Finding(
        State.FAULT,
        "sameness",
        f"{setting} of this host has not the secret with which {strange} {what} were made.",
        f"Give every host the same {setting}, older values included where it is a list. After a wanted "
        "change of it this passes when they have ended.",
    )


def _keys() -> int:
    known = [pepper_fingerprint(pepper) for pepper in settings.SVC_KEY_PEPPERS]
    counted = working().exclude(pepper__in=known).aggregate(number=Count("pk"))
    return int(counted["number"])


def _sessions() -> int:
    signer = signing.TimestampSigner(salt=SessionStore().key_salt)
    newest = Session.objects.filter(expire_date__gt=clock.now()).order_by("-expire_date")
    return sum(
        not _is_ours(signer, data)
        for data in newest.values_list("session_data", flat=True)[:_SESSIONS]
    )


def _is_ours(signer: signing.TimestampSigner, data: str) -> bool:
    try:
        signer.unsign(data)
    except signing.BadSignature:
        return False
    return True


def _captures() -> int:
    newest = DiagnosticCapture.objects.order_by("-created_at").values_list("content", flat=True)
    return _unreadable(Cipher(settings.SVC_CAPTURE_KEYS), newest[:_SEALED])


def _clips() -> int:
    newest = CloneAudio.objects.order_by("-pk").values_list("sealed", flat=True)
    return _unreadable(Cipher(settings.SVC_CLONE_KEYS), newest[:_SEALED])


def _unreadable(cipher: Cipher, sealed: Iterable[bytes | memoryview]) -> int:
    unreadable = 0
    for each in sealed:
        try:
            cipher.open(bytes(each))
        except Unreadable:
            unreadable += 1
    return unreadable
