"""The authenticated caller of the hot path, and the one query that finds it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from math import inf

from django.conf import settings

from accounts.keys.keys import digest_of
from accounts.models import ApiKey, Organization, Scope


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits per minute; ``None`` means unlimited."""

    requests_per_minute: int | None
    tokens_per_minute: int | None


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """The organization's limits on the speech surface; ``None`` means unlimited."""

    requests_per_minute: int | None
    characters_per_day: int | None


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller with a key: everything that the hot path needs to know. Ids are UUID texts."""

    organization_id: str
    api_key_id: str
    scope: Scope
    plan: str
    organization_limits: RateLimits
    key_limits: RateLimits
    speech_limits: SpeechLimits
    captures_allowed: bool = True
    """Whether the content of requests may be captured (``inference.chat.captures``)."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key that is not revoked; it is refused from ``refused_from`` (epoch seconds) on."""

    principal: Principal
    refused_from: float


def read_keys(secrets: Collection[str]) -> dict[str, KeyRecord]:
    """Read the key of each secret from the database; unknown and revoked ones are left out.

    One query, whatever the number of secrets. Raises ``django.db.Error``.
    """
    secret_of = {
        digest_of(secret, pepper): secret
        for secret in secrets
        for pepper in settings.SVC_KEY_PEPPERS
    }
    rows = ApiKey.objects.filter(digest__in=secret_of, revoked_at=None).select_related(
        "organization"
    )
    return {secret_of[row.digest]: _record(row, row.organization) for row in rows}


def read_used_keys(most: int) -> dict[str, KeyRecord]:
    """Read the ``most`` keys that were used last and are not revoked, by their stored digest.

    Raises ``django.db.Error``.
    """
    rows = (
        ApiKey.objects.filter(last_used_at__isnull=False, revoked_at=None)
        .select_related("organization")
        .order_by("-last_used_at")[:most]
    )
    return {row.digest: _record(row, row.organization) for row in rows}


def _record(key: ApiKey, organization: Organization) -> KeyRecord:
    return KeyRecord(
        Principal(
            organization_id=str(organization.pk),
            api_key_id=str(key.pk),
            scope=Scope(key.scope),
            plan=organization.plan,
            organization_limits=RateLimits(
                organization.requests_per_minute, organization.tokens_per_minute
            ),
            key_limits=RateLimits(key.requests_per_minute, key.tokens_per_minute),
            speech_limits=SpeechLimits(
                organization.speech_requests_per_minute, organization.speech_characters_per_day
            ),
            captures_allowed=organization.captures_allowed,
        ),
        refused_from=min(_epoch(key.expires_at), _epoch(organization.disabled_at)),
    )


def _epoch(moment: datetime | None) -> float:
    return inf if moment is None else moment.timestamp()
