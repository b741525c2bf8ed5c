"""The door of the hot path: an ``Authorization`` header in, a ``Principal`` out.

What the database said of a key is held and used again until a change of any key is announced
(``accounts.changes``); docs/explain/keys.md tells for how long in every case. Neither a secret nor
its stored digest is held: entries are found by the SHA-256 of what the caller presented.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import Error

from accounts.changes import KEYS, ChangeWatcher, watcher
from accounts.keys import digest_of, well_formed
from accounts.last_used import NOTE_SECONDS, LastUses
from accounts.lookup_budget import LONGEST_WAIT_SECONDS, UnknownKeyBudget
from accounts.lookups import Lookups
from accounts.models import Scope
from accounts.principal import (
    KeyRecord,
    Principal,
    RateLimits,
    SpeechLimits,
    read_keys,
    read_used_keys,
)
from svc_project.lib.client_address import client_network
from svc_project.lib.errors import InternalError, InvalidCredential

__all__ = ["Keyring", "Principal", "RateLimits", "SpeechLimits", "authorization", "keyring"]

log = logging.getLogger(__name__)

_MOST_HELD = 50_000
_MOST_WARM = 10_000
_MOST_REFUSED = 10_000
_REFUSED_SECONDS = 1.0
_FRESH_SECONDS = 1.0
_OLDEST_SECONDS = 60.0
"""Bounds what a change made behind Django's back (plain SQL) can do: nobody announces it."""
_KNOWN_KEY_WAIT_SECONDS = 1.0
_UNKNOWN_KEY_WAIT_SECONDS = LONGEST_WAIT_SECONDS * 2


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The one ``Authorization`` value of ASGI headers, or ``None``.

    Raises ``InvalidCredential`` when there are two: nobody can say which one counts.
    """
    found: bytes | None = None
    for name, value in headers:
        if name == b"authorization":
            if found is not None:
                raise InvalidCredential
            found = value
    return found


@dataclass(slots=True)
class _Held:
    """What is held of a key; ``record`` is ``None`` for one that is unknown or revoked."""

    record: KeyRecord | None
    generation: int
    verified: float
    noted: float = float("-inf")


class Keyring:
    """Knows the keys in use. One per process, for any number of threads and one event loop."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        self._held: dict[bytes, _Held] = {}
        self._refused: dict[bytes, _Held] = {}
        self._warm: dict[bytes, _Held] = {}
        """Keys of an earlier process that were not presented to this one yet, by the SHA-256 of
        their stored digest."""
        self._generation = 0
        self._lock = threading.Lock()
        self._watcher = watcher
        self._budget = UnknownKeyBudget()
        self._lookups = Lookups(self._verify, lambda held: held.record is not None, self._budget)
        self._last_uses = LastUses()
        watcher.subscribe(KEYS, self.outdate)

    async def authenticate(
        self,
        authorization: bytes | str | None,
        scopes: frozenset[Scope],
        asgi_scope: Mapping[str, Any] | None = None,
    ) -> Principal:
        """The caller that this ``Authorization`` value names, if its key has one of ``scopes``.

        ``asgi_scope`` tells where a key comes from that is not held. Never suspends for a key that is held and current. Raises ``InvalidCredential`` for every
        problem of the credential, ``InternalError`` when the database does not answer about a key
        that is not held, ``ServerOverloaded`` when too many unknown keys wait.
        """
        presented = _presented(authorization)
        digest = sha256(presented).digest()
        held = self._held.get(digest)
        if held is None or not self._is_current(held):
            held = await self._renewed(presented, held, asgi_scope)
        return self._admitted(held, scopes)

    def authenticate_sync(
        self,
        authorization: bytes | str | None,
        scopes: frozenset[Scope],
        asgi_scope: Mapping[str, Any] | None = None,
    ) -> Principal:
        """``authenticate`` for a thread that may wait; looks up on the thread's own connection."""
        presented = _presented(authorization)
        held = self._held.get(sha256(presented).digest())
        if held is None or not self._is_current(held):
            held = self._renewed_sync(presented, held, asgi_scope)
        return self._admitted(held, scopes)

    def organization_of(self, authorization: bytes) -> str | None:
        """Whose key this ``Authorization`` value holds, where that is known without a look-up.

        To tell callers apart, not to let them in: a key that was revoked just now still counts.
        """
        try:
            held = self._held.get(sha256(_presented(authorization)).digest())
        except InvalidCredential:
            return None
        if held is None or held.record is None or time.time() >= held.record.refused_from:
            return None
        return held.record.principal.organization_id

    def warm(self) -> None:
        """Hold the keys that were used last, so that they need not wait among unknown ones.

        Called when the process starts. Raises ``django.db.Error``.
        """
        generation, verified = self._generation, time.monotonic()
        found = {
            sha256(digest.encode()).digest(): _Held(record, generation, verified)
            for digest, record in read_used_keys(_MOST_WARM).items()
        }
        with self._lock:
            self._warm = found

    def outdate(self) -> None:
        """Have every key looked up again before its next use."""
        self._generation += 1

    def close(self) -> None:
        """Write what is noted and end the threads; the next use starts them again."""
        self._lookups.close()
        self._last_uses.close()

    def _is_current(self, held: _Held) -> bool:
        if held.generation != self._generation:
            return False
        age = time.monotonic() - held.verified
        return age < settings.SVC_KEY_CACHE_SECONDS or (
            age < _OLDEST_SECONDS and self._watcher.is_fresh(_FRESH_SECONDS)
        )

    def _admitted(self, held: _Held, scopes: frozenset[Scope]) -> Principal:
        now = time.time()
        record = held.record
        if record is None or now >= record.refused_from or record.principal.scope not in scopes:
            raise InvalidCredential
        if now - held.noted >= NOTE_SECONDS:
            held.noted = now
            self._last_uses.note(record.principal.api_key_id, now)
        return record.principal

    async def _renewed(
        self, presented: bytes, held: _Held | None, asgi_scope: Mapping[str, Any] | None
    ) -> _Held:
        secret = self._worth_asking(presented, known=held is not None)
        held = held or self._warmed(secret)
        if held is not None and self._is_current(held):
            return held
        answer = self._lookups.ask(secret, _network(asgi_scope) if held is None else None)
        if held is not None and self._lookups.is_failing() and _outlasts_an_outage(held):
            return held
        patience = _UNKNOWN_KEY_WAIT_SECONDS if held is None else _KNOWN_KEY_WAIT_SECONDS
        try:
            # Shielded because other callers wait for the same answer.
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(answer)), patience)
        except (Error, TimeoutError) as error:
            return _spared(held, error)

    def _renewed_sync(
        self, presented: bytes, held: _Held | None, asgi_scope: Mapping[str, Any] | None
    ) -> _Held:
        secret = self._worth_asking(presented, known=held is not None)
        held = held or self._warmed(secret)
        if held is not None and self._is_current(held):
            return held
        network = _network(asgi_scope)
        if held is None:
            self._budget.take_patiently(network)
        try:
            found = self._verify([secret])[secret]
        except Error as error:
            return _spared(held, error)
        if held is None and found.record is not None:
            self._budget.give_back(network)
        return found

    def _warmed(self, secret: str) -> _Held | None:
        """What ``warm`` found of the key, held from now on like any other."""
        if not self._warm:
            return None
        for pepper in settings.SVC_KEY_PEPPERS:
            digest = sha256(digest_of(secret, pepper).encode()).digest()
            with self._lock:
                held = self._warm.pop(digest, None)
                if held is not None:
                    self._hold(sha256(secret.encode()).digest(), held)
                    return held
        return None

    def _worth_asking(self, presented: bytes, *, known: bool) -> str:
        """The secret as text; raises ``InvalidCredential`` where a look-up would be wasted."""
        try:
            secret = presented.decode("ascii")
        except UnicodeDecodeError:
            raise InvalidCredential from None
        if known:
            return secret
        refused = self._refused.get(sha256(presented).digest())
        if (
            refused is not None
            and refused.generation == self._generation
            and time.monotonic() - refused.verified < _REFUSED_SECONDS
        ) or well_formed(secret) is None:
            raise InvalidCredential
        return secret

    def _verify(self, secrets: Sequence[str]) -> dict[str, _Held]:
        """Ask the database about ``secrets`` and hold what it says; raises ``django.db.Error``."""
        # Both are read before the query: whatever changes meanwhile makes the answer outdated.
        generation, verified = self._generation, time.monotonic()
        records = read_keys(secrets)
        answers = {secret: _Held(records.get(secret), generation, verified) for secret in secrets}
        with self._lock:
            for secret, answer in answers.items():
                self._hold(sha256(secret.encode()).digest(), answer)
        return answers

    def _hold(self, digest: bytes, answer: _Held) -> None:
        """Hold ``answer``; the entry verified longest ago makes room.

        An entry in use is verified again once a minute, so age is a good stand-in for disuse, and
        reading needs no lock.
        """
        before = self._held.pop(digest, None)
        self._refused.pop(digest, None)
        if answer.record is None:
            entries, most = self._refused, _MOST_REFUSED
        else:
            entries, most = self._held, _MOST_HELD
            if before is not None:
                answer.noted = before.noted
        entries[digest] = answer
        if len(entries) > most:
            del entries[next(iter(entries))]


def _network(asgi_scope: Mapping[str, Any] | None) -> str:
    return "" if asgi_scope is None else client_network(asgi_scope)


def _presented(authorization: bytes | str | None) -> bytes:
    """The token of ``Bearer <token>`` (RFC 6750, 2.1; the scheme in any case, RFC 9110, 11.1)."""
    if authorization is None:
        raise InvalidCredential
    if isinstance(authorization, str):
        # What is not ASCII becomes "?", which no key contains.
        authorization = authorization.encode("ascii", "replace")
    scheme, _, presented = authorization.partition(b" ")
    if scheme != b"Bearer" and scheme.lower() != b"bearer":
        raise InvalidCredential
    return presented


def _outlasts_an_outage(held: _Held) -> bool:
    limit: float = settings.SVC_KEY_OUTAGE_SECONDS
    return time.monotonic() - held.verified < limit


def _spared(held: _Held | None, error: Exception) -> _Held:
    """``held`` while the database is away; raises ``InternalError`` where nothing can be said."""
    if held is not None and _outlasts_an_outage(held):
        return held
    log.error("a key could not be looked up: %s", type(error).__name__)
    raise InternalError from None


keyring = Keyring(watcher)
"""The key ring of this process."""
