"""All working keys in a process's memory, found by their digests.

Neither a secret nor anything from which it could be found is held: a key is found by its keyed digest,
as in the database. So the time that a search takes says nothing about the keys that exist.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import DataError
from django.db.models import Q, QuerySet

from accounts.changes import KEYS, ChangeWatcher
from accounts.keys.keys import MOST_WORKING_KEYS, keyed_digest
from accounts.keys.principal import Principal, RateLimits, SpeechLimits, priority_of
from accounts.models import ApiKey, Scope
from accounts.snapshots import SnapshotHolder
from core import clock

log = logging.getLogger(__name__)

_HELD_AFTER_EXPIRY: Final = timedelta(hours=1)
"""An expired key is refused, but held for a while: the host's clock may be set back."""
_PAGE: Final = 2000
"""Rows that are read at once; all at once would take three times the memory that the keys take."""
_UNREADABLE: Final = (DataError, ValueError)
"""Raised for a value that the database keeps and Python does not know, such as a time ``infinity``."""
_NO_LIMITS: Final = RateLimits(None, None)
_SCOPES: Final = {scope.value: scope for scope in Scope}


@dataclass(slots=True)
class KeyRecord:
    """A key that is not revoked; it is refused from ``refused_from`` (epoch seconds) on."""

    principal: Principal
    refused_from: float
    use_recorded: float = field(default=-inf, compare=False)
    """When its use was last recorded (epoch seconds)."""

    def accepts(self, scopes: frozenset[Scope]) -> bool:
        """Whether the key works now and has one of ``scopes``."""
        return time.time() < self.refused_from and self.principal.scope in scopes


class _Row(NamedTuple):
    """What is read of a key and its organization; the columns are ``_COLUMNS``."""

    digest: str
    id: UUID
    scope: str
    requests_per_minute: int | None
    tokens_per_minute: int | None
    priority: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    organization_id: UUID
    plan: str
    organization_requests_per_minute: int | None
    organization_tokens_per_minute: int | None
    speech_requests_per_minute: int | None
    speech_characters_per_day: int | None
    organization_priority: str
    captures_allowed: bool
    failed_content_hours: int
    disabled_at: datetime | None


_COLUMNS: Final = (
    "digest",
    "id",
    "scope",
    "requests_per_minute",
    "tokens_per_minute",
    "priority",
    "expires_at",
    "revoked_at",
    "organization_id",
    "organization__plan",
    "organization__requests_per_minute",
    "organization__tokens_per_minute",
    "organization__speech_requests_per_minute",
    "organization__speech_characters_per_day",
    "organization__priority",
    "organization__captures_allowed",
    "organization__failed_content_hours",
    "organization__disabled_at",
)


class WorkingKeys(SnapshotHolder[dict[bytes, KeyRecord]]):
    """The keys that are neither revoked nor expired, by their digests.

    A change replaces the records of the keys that it concerns, one after the other.
    """

    def __init__(self, watcher: ChangeWatcher) -> None:
        super().__init__(watcher, KEYS, {})
        self._version = 0

    def read(self) -> dict[bytes, KeyRecord]:
        # Before the rows: what changes meanwhile is read once more, not missed.
        version = self._watcher.version(KEYS)
        working = _read(Q(expires_at=None) | Q(expires_at__gt=_held_since()), revoked_at=None)
        records = _Records(self.snapshot)
        found: dict[bytes, KeyRecord] = {}
        page, last = _page(working)
        while last is not None:
            for digest, row in _rows(page):
                found[digest] = records.of(row, digest)
            page, last = _page(working.filter(pk__gt=last))
        self._version = version
        if len(found) > MOST_WORKING_KEYS:
            log.warning("%d keys work, but at most %d may", len(found), MOST_WORKING_KEYS)
        return found

    def load_changes(self) -> None:
        with self._loading:
            version = self._watcher.version(KEYS)
            own = _read(version__gt=self._version)
            of_organizations = _read(organization__version__gt=self._version)
            since = _held_since()
            records = _Records(self.snapshot)
            found, damaged = _changed(own, of_organizations)
            for digest in self._digests_of(damaged):
                del self.snapshot[digest]
            for digest, row in _rows(found):
                expired = row.expires_at is not None and row.expires_at <= since
                if row.revoked_at is not None or expired:
                    self.snapshot.pop(digest, None)
                else:
                    self.snapshot[digest] = records.of(row, digest)
            self._version = version

    def _digests_of(self, ids: Collection[UUID]) -> list[bytes]:
        if not ids:
            return []
        named = {str(each) for each in ids}
        held = self.snapshot.items()
        return [digest for digest, key in held if key.principal.api_key_id in named]

    def find(self, token: bytes) -> KeyRecord | None:
        """The record of the key ``token``, if it is held."""
        for pepper in settings.SVC_KEY_PEPPERS:
            if (record := self.snapshot.get(keyed_digest(token, pepper))) is not None:
                return record
        return None


def read_key(token: bytes) -> KeyRecord | None:
    """Read the key ``token`` from the database; ``None`` when it is unknown or revoked.

    Raises ``django.db.Error``.
    """
    rows = _rows(_read(digest__in=digests_of(token), revoked_at=None))
    return next((_Records({}).of(row, digest) for digest, row in rows), None)


def digests_of(token: bytes) -> tuple[str, ...]:
    """The digests under which the database may have the key ``token``, one for each pepper."""
    return tuple(keyed_digest(token, pepper).hex() for pepper in settings.SVC_KEY_PEPPERS)


class _Records:
    """Makes records; those of one organization share its limits."""

    def __init__(self, held: Mapping[bytes, KeyRecord]) -> None:
        self._held = held
        self._organizations: dict[UUID, tuple[str, RateLimits, SpeechLimits]] = {}

    def of(self, row: _Row, digest: bytes) -> KeyRecord:
        """The record of ``row``: the one that is held already, if it is the same."""
        organization_id, limits, speech_limits = self._organization(row)
        record = KeyRecord(
            Principal(
                organization_id=organization_id,
                api_key_id=str(row.id),
                scope=_SCOPES[row.scope],
                plan=row.plan,
                organization_limits=limits,
                key_limits=_NO_LIMITS
                if row.requests_per_minute is row.tokens_per_minute is None
                else RateLimits(row.requests_per_minute, row.tokens_per_minute),
                speech_limits=speech_limits,
                captures_allowed=row.captures_allowed,
                failed_content_hours=row.failed_content_hours if row.captures_allowed else 0,
                priority=priority_of(row.organization_priority, row.priority),
            ),
            refused_from=min(_epoch(row.expires_at), _epoch(row.disabled_at)),
        )
        before = self._held.get(digest)
        if before is None:
            return record
        if before == record:
            return before
        record.use_recorded = before.use_recorded
        return record

    def _organization(self, row: _Row) -> tuple[str, RateLimits, SpeechLimits]:
        found = self._organizations.get(row.organization_id)
        if found is None:
            found = self._organizations[row.organization_id] = (
                str(row.organization_id),
                RateLimits(
                    row.organization_requests_per_minute, row.organization_tokens_per_minute
                ),
                SpeechLimits(row.speech_requests_per_minute, row.speech_characters_per_day),
            )
        return found


def _read(*conditions: Q, **lookups: object) -> QuerySet[ApiKey, Any]:
    return ApiKey.objects.filter(*conditions, **lookups).order_by().values_list(*_COLUMNS)


def _page(working: QuerySet[ApiKey, Any]) -> tuple[list[Any], UUID | None]:
    """The first rows of ``working`` by their ids, and the last of these; none where none is left."""
    query = working.order_by("pk")[:_PAGE]
    try:
        rows = list(query)
        return rows, _Row._make(rows[-1]).id if rows else None
    except _UNREADABLE:
        ids = list(query.values_list("pk", flat=True))
        return _one_by_one(ids)[0], ids[-1] if ids else None


def _changed(
    first: QuerySet[ApiKey, Any], second: QuerySet[ApiKey, Any]
) -> tuple[list[Any], Collection[UUID]]:
    """The rows of two queries, and the ids of those that cannot be read."""
    try:
        return list(first.union(second)), ()
    except _UNREADABLE:
        ids = {pk for query in (first, second) for pk in query.values_list("pk", flat=True)}
        return _one_by_one(ids)


def _one_by_one(ids: Iterable[UUID]) -> tuple[list[Any], Collection[UUID]]:
    """The rows of keys of which one cannot be read, and the ids of such."""
    rows: list[Any] = []
    damaged = []
    for each in ids:
        try:
            rows += _read(pk=each)
        except _UNREADABLE:
            log.error("key %s is damaged, or its organization: a time of it cannot be read", each)
            damaged.append(each)
    return rows, damaged


def _rows(found: Iterable[Any]) -> Iterator[tuple[bytes, _Row]]:
    """The rows that were found, by their digests; one that is damaged costs no other key."""
    for row in map(_Row._make, found):
        try:
            digest = bytes.fromhex(row.digest)
        except ValueError:
            log.error("key %s is damaged: its digest is not hexadecimal", row.id)
            continue
        yield digest, row


def _held_since() -> datetime:
    return clock.now() - _HELD_AFTER_EXPIRY


def _epoch(moment: datetime | None) -> float:
    return inf if moment is None else moment.timestamp()
