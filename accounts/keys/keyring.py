"""Authentication on the hot path: turns an ``Authorization`` header into a ``Principal``.

A key's row is cached until a change of any key is announced (``accounts.changes``);
docs/explain/keys.md gives the times for every case. Neither a secret nor its stored digest is
cached: entries are found by the SHA-256 of the token that the caller sent.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import Error

from accounts.changes import KEYS, ChangeWatcher, watcher
from accounts.keys.header import bearer_token
from accounts.keys.keys import digest_of, well_formed
from accounts.keys.last_used import RECORD_SECONDS, LastUses
from accounts.keys.lookup_budget import LONGEST_WAIT_SECONDS, UnknownKeyBudget
from accounts.keys.lookups import Lookups
from accounts.keys.principal import (
    KeyRecord,
    Principal,
    RateLimits,
    SpeechLimits,
    read_keys,
    read_used_keys,
)
from accounts.models import Scope
from svc_project.lib.api.client_address import client_network
from svc_project.lib.errors import InternalError, InvalidCredential

__all__ = ["Keyring", "Principal", "RateLimits", "SpeechLimits", "keyring"]

log = logging.getLogger(__name__)

_MOST_CACHED = 50_000
_MOST_WARM = 10_000
_MOST_REFUSED = 10_000
_REFUSED_SECONDS = 1.0
_FRESH_SECONDS = 1.0
_OLDEST_SECONDS = 60.0
"""The most seconds until a change by plain SQL takes effect, since no stamp announces it."""
_KNOWN_KEY_WAIT_SECONDS = 1.0
_UNKNOWN_KEY_WAIT_SECONDS = LONGEST_WAIT_SECONDS * 2


@dataclass(slots=True)
class _CachedKey:
    """A cached key; ``record`` is ``None`` when it is unknown or revoked."""

    record: KeyRecord | None
    generation: int
    verified: float
    use_recorded: float = float("-inf")


class Keyring:
    """Caches the keys in use. One per process, for any number of threads and one event loop."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        self._cached: dict[bytes, _CachedKey] = {}
        self._refused: dict[bytes, _CachedKey] = {}
        self._warm: dict[bytes, _CachedKey] = {}
        """Keys that this process has not seen yet, by the SHA-256 of their stored digest."""
        self._generation = 0
        self._lock = threading.Lock()
        self._watcher = watcher
        self._budget = UnknownKeyBudget()
        self._lookups = Lookups(self._verify, lambda key: key.record is not None, self._budget)
        self._last_uses = LastUses()
        watcher.subscribe(KEYS, self.invalidate)

    async def authenticate(
        self,
        authorization: bytes | str | None,
        scopes: frozenset[Scope],
        asgi_scope: Mapping[str, Any] | None = None,
    ) -> Principal:
        """Return the caller of this ``Authorization`` value, if its key has one of ``scopes``.

        ``asgi_scope`` gives the client network of a key that is not cached. Never suspends for a
        key with a current cache entry. Raises ``InvalidCredential`` for every problem of the
        credential, ``InternalError`` when a key is not cached and the database does not answer,
        ``ServerOverloaded`` when too many unknown keys wait.
        """
        token = bearer_token(authorization)
        digest = sha256(token).digest()
        cached = self._cached.get(digest)
        if cached is None or not self._is_current(cached):
            cached = await self._look_up(token, cached, asgi_scope)
        return self._principal(cached, scopes)

    def authenticate_sync(
        self,
        authorization: bytes | str | None,
        scopes: frozenset[Scope],
        asgi_scope: Mapping[str, Any] | None = None,
    ) -> Principal:
        """``authenticate`` for a thread that may block; looks up on the thread's own connection."""
        token = bearer_token(authorization)
        cached = self._cached.get(sha256(token).digest())
        if cached is None or not self._is_current(cached):
            cached = self._look_up_sync(token, cached, asgi_scope)
        return self._principal(cached, scopes)

    def organization_of(self, authorization: bytes) -> str | None:
        """The organization of the key in this ``Authorization`` value, if known without a look-up.

        Tells callers apart, but does not authenticate them: a key revoked just now still counts.
        """
        try:
            cached = self._cached.get(sha256(bearer_token(authorization)).digest())
        except InvalidCredential:
            return None
        if cached is None or cached.record is None or time.time() >= cached.record.refused_from:
            return None
        return cached.record.principal.organization_id

    def warm(self) -> None:
        """Load the keys that were used last, so that they need not wait among unknown ones.

        Called when the process starts. Raises ``django.db.Error``.
        """
        generation, verified = self._generation, time.monotonic()
        found = {
            sha256(digest.encode()).digest(): _CachedKey(record, generation, verified)
            for digest, record in read_used_keys(_MOST_WARM).items()
        }
        with self._lock:
            self._warm = found

    def invalidate(self) -> None:
        """Invalidate every cached key: each is looked up again before its next use."""
        self._generation += 1

    def close(self) -> None:
        """Write the recorded uses and end the threads; the next use starts them again."""
        self._lookups.close()
        self._last_uses.close()

    def _is_current(self, cached: _CachedKey) -> bool:
        if cached.generation != self._generation:
            return False
        age = time.monotonic() - cached.verified
        return age < settings.SVC_KEY_CACHE_SECONDS or (
            age < _OLDEST_SECONDS and self._watcher.is_fresh(_FRESH_SECONDS)
        )

    def _principal(self, cached: _CachedKey, scopes: frozenset[Scope]) -> Principal:
        now = time.time()
        record = cached.record
        if record is None or now >= record.refused_from or record.principal.scope not in scopes:
            raise InvalidCredential
        if now - cached.use_recorded >= RECORD_SECONDS:
            cached.use_recorded = now
            self._last_uses.record(record.principal.api_key_id, now)
        return record.principal

    async def _look_up(
        self, token: bytes, cached: _CachedKey | None, asgi_scope: Mapping[str, Any] | None
    ) -> _CachedKey:
        secret, cached = self._secret_to_look_up(token, cached)
        if cached is not None and self._is_current(cached):
            return cached
        answer = self._lookups.submit(secret, _network(asgi_scope) if cached is None else None)
        if cached is not None and self._lookups.is_failing() and _is_usable_in_outage(cached):
            return cached
        timeout = _UNKNOWN_KEY_WAIT_SECONDS if cached is None else _KNOWN_KEY_WAIT_SECONDS
        try:
            # Shielded because other callers wait for the same answer.
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(answer)), timeout)
        except (Error, TimeoutError) as error:
            return _cached_during_outage(cached, error)

    def _look_up_sync(
        self, token: bytes, cached: _CachedKey | None, asgi_scope: Mapping[str, Any] | None
    ) -> _CachedKey:
        secret, cached = self._secret_to_look_up(token, cached)
        if cached is not None and self._is_current(cached):
            return cached
        network = _network(asgi_scope)
        if cached is None:
            self._budget.wait_and_take(network)
        try:
            found = self._verify([secret])[secret]
        except Error as error:
            return _cached_during_outage(cached, error)
        if cached is None and found.record is not None:
            self._budget.refund(network)
        return found

    def _take_warm(self, secret: str) -> _CachedKey | None:
        """Move the key that ``warm`` loaded into the cache, and return it."""
        if not self._warm:
            return None
        for pepper in settings.SVC_KEY_PEPPERS:
            digest = sha256(digest_of(secret, pepper).encode()).digest()
            with self._lock:
                cached = self._warm.pop(digest, None)
                if cached is not None:
                    self._store(sha256(secret.encode()).digest(), cached)
                    return cached
        return None

    def _secret_to_look_up(
        self, token: bytes, cached: _CachedKey | None
    ) -> tuple[str, _CachedKey | None]:
        """Return the secret as text, and its key if it is in memory.

        Raises ``InvalidCredential`` when a look-up cannot find it.
        """
        try:
            secret = token.decode("ascii")
        except UnicodeDecodeError:
            raise InvalidCredential from None
        if cached is not None:
            return secret, cached
        refused = self._refused.get(sha256(token).digest())
        if (
            refused is not None
            and refused.generation == self._generation
            and time.monotonic() - refused.verified < _REFUSED_SECONDS
        ) or well_formed(secret) is None:
            raise InvalidCredential
        return secret, self._take_warm(secret)

    def _verify(self, secrets: Sequence[str]) -> dict[str, _CachedKey]:
        """Look up ``secrets`` in the database and cache the answers; raises ``django.db.Error``."""
        # Both are read before the query: a change meanwhile must invalidate the answer.
        generation, verified = self._generation, time.monotonic()
        records = read_keys(secrets)
        answers = {each: _CachedKey(records.get(each), generation, verified) for each in secrets}
        with self._lock:
            for secret, answer in answers.items():
                self._store(sha256(secret.encode()).digest(), answer)
        return answers

    def _store(self, digest: bytes, answer: _CachedKey) -> None:
        """Hold ``answer``; the entry verified longest ago makes room.

        An entry in use is verified again once a minute, so its age approximates disuse, and reading
        needs no lock.
        """
        before = self._cached.pop(digest, None)
        self._refused.pop(digest, None)
        if answer.record is None:
            entries, most = self._refused, _MOST_REFUSED
        else:
            entries, most = self._cached, _MOST_CACHED
            if before is not None:
                answer.use_recorded = before.use_recorded
        entries[digest] = answer
        if len(entries) > most:
            del entries[next(iter(entries))]


def _network(asgi_scope: Mapping[str, Any] | None) -> str:
    return "" if asgi_scope is None else client_network(asgi_scope)


def _is_usable_in_outage(cached: _CachedKey) -> bool:
    limit: float = settings.SVC_KEY_OUTAGE_SECONDS
    return time.monotonic() - cached.verified < limit


def _cached_during_outage(cached: _CachedKey | None, error: Exception) -> _CachedKey:
    """Return ``cached`` while it is usable in an outage, else raise ``InternalError``."""
    if cached is not None and _is_usable_in_outage(cached):
        return cached
    log.error("a key could not be looked up: %s", type(error).__name__)
    raise InternalError from None


keyring = Keyring(watcher)
"""The key ring of this process."""
