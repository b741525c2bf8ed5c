"""Authentication on the hot path: turns an ``Authorization`` header into a ``Principal``.

Keys are in memory (``accounts.keys.snapshot``). What memory does not accept waits for the next look at
the stamp of the keys, which all such callers share: so a key that another process made a moment ago
works at once, invented keys cost no query each, and a refused key takes as long as an unknown one.
docs/explain/keys.md gives the times for every case.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future
from typing import Final

from django.conf import settings
from django.db import Error, OperationalError

from accounts.changes import KEYS, ChangeWatcher, key_watcher
from accounts.keys.header import bearer_token
from accounts.keys.keys import well_formed
from accounts.keys.last_used import RECORD_SECONDS, LastUses
from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.keys.snapshot import KeyRecord, WorkingKeys, digests_of, read_key
from accounts.models import Scope
from core.database.threads import run_once
from core.errors import InternalError, InvalidCredential

__all__ = ["Keyring", "Principal", "RateLimits", "SpeechLimits", "keyring"]

log = logging.getLogger(__name__)

_FRESH_SECONDS: Final = 2.0
"""Well above the time between polls, and well below the five seconds that docs/explain/keys.md promises."""
_KNOWN_KEY_WAIT_SECONDS: Final = 1.0
_UNKNOWN_KEY_WAIT_SECONDS: Final = 5.0


class Keyring:
    """The keys of one process, for any number of threads and one event loop."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        self._watcher = watcher
        self._keys = WorkingKeys(watcher)
        self._last_uses = LastUses()

    async def authenticate(
        self, authorization: bytes | str | None, scopes: frozenset[Scope]
    ) -> Principal:
        """Return the caller of this ``Authorization`` value, if its key has one of ``scopes``.

        Never suspends for a key that works while the process sees changes. Raises
        ``InvalidCredential`` for every problem of the credential, and ``InternalError`` when it is not
        known and the database does not answer.
        """
        token = bearer_token(authorization)
        record = self._keys.find(token)
        if self._is_certain(token, record, scopes):
            return self._principal(record, scopes)
        try:
            record = await self._look_up(token, record, scopes)
        except (Error, TimeoutError) as error:
            return self._during_outage(record, scopes, error)
        return self._principal(record, scopes)

    def authenticate_sync(
        self, authorization: bytes | str | None, scopes: frozenset[Scope]
    ) -> Principal:
        """``authenticate`` for a thread that may block, which asks the database itself."""
        token = bearer_token(authorization)
        record = self._keys.find(token)
        if self._is_certain(token, record, scopes):
            return self._principal(record, scopes)
        try:
            record = read_key(token)
        except Error as error:
            return self._during_outage(record, scopes, error)
        return self._principal(record, scopes)

    def organization_of(self, authorization: bytes) -> str | None:
        """The organization of the key in this ``Authorization`` value, if known without a look-up.

        Tells callers apart, but does not authenticate them: a key revoked just now still counts.
        """
        try:
            record = self._keys.find(bearer_token(authorization))
        except InvalidCredential:
            return None
        if record is None or time.time() >= record.refused_from:
            return None
        return record.principal.organization_id

    def owner_of(self, token: bytes) -> Principal | tuple[str, ...] | None:
        """The owner of a key, also of one that is refused; where memory does not hold it, its digests.

        None for what cannot be a key.
        """
        if not _can_exist(token):
            return None
        if (record := self._keys.find(token)) is not None:
            return record.principal
        return digests_of(token)

    def close(self) -> None:
        """Write the recorded uses and end their thread; the next use starts it again."""
        self._last_uses.close()

    def _is_certain(self, token: bytes, record: KeyRecord | None, scopes: frozenset[Scope]) -> bool:
        """Whether memory decides about ``token``. Raises ``InvalidCredential`` for what is no key."""
        if record is None and not _can_exist(token):
            raise InvalidCredential
        accepted = record is not None and record.accepts(scopes)
        if self._watcher.is_fresh(KEYS, _FRESH_SECONDS):
            return accepted
        self._watcher.abort_overdue()
        # While the database is away a known key waits for nothing.
        return accepted and self._watcher.is_failing and self._is_usable_in_outage()

    async def _look_up(
        self, token: bytes, record: KeyRecord | None, scopes: frozenset[Scope]
    ) -> KeyRecord | None:
        """Return the record of ``token`` after a look at the stamp that begins after this call.

        Raises ``django.db.Error`` and ``TimeoutError``.
        """
        if not self._watcher.is_running:
            return await run_once(lambda: read_key(token))
        began = time.monotonic()
        accepted = record is not None and record.accepts(scopes)
        seconds = _KNOWN_KEY_WAIT_SECONDS if accepted else _UNKNOWN_KEY_WAIT_SECONDS
        try:
            await _ended(self._watcher.look(), seconds)
        except TimeoutError:
            self._watcher.is_failing = True
            raise
        if self._watcher.confirmed(KEYS) < began:
            raise OperationalError("the keys were not loaded")
        return self._keys.find(token)

    def _principal(self, record: KeyRecord | None, scopes: frozenset[Scope]) -> Principal:
        if record is None or not record.accepts(scopes):
            raise InvalidCredential
        now = time.time()
        if now - record.use_recorded >= RECORD_SECONDS:
            record.use_recorded = now
            self._last_uses.record(record.principal.api_key_id, now)
        return record.principal

    def _during_outage(
        self, record: KeyRecord | None, scopes: frozenset[Scope], error: Exception
    ) -> Principal:
        """Decide by memory while it is usable in an outage, else raise ``InternalError``."""
        if record is not None and self._is_usable_in_outage():
            return self._principal(record, scopes)
        log.error("a key could not be looked up: %s", type(error).__name__)
        raise InternalError from None

    def _is_usable_in_outage(self) -> bool:
        return self._watcher.is_fresh(KEYS, settings.SVC_KEY_OUTAGE_SECONDS)


def _can_exist(token: bytes) -> bool:
    try:
        return well_formed(token.decode("ascii")) is not None
    except UnicodeDecodeError:
        return False


async def _ended(look: Future[None], seconds: float) -> None:
    """Wait for ``look``, which other callers wait for too. Raises its exception, or ``TimeoutError``."""
    # Not wait_for, which drops a cancellation that comes with the answer (Python 3.11).
    async with asyncio.timeout(seconds):
        await asyncio.shield(asyncio.wrap_future(look))


keyring = Keyring(key_watcher)
"""The key ring of this process."""
