"""What commands and the management API show of an organization, a key and a user, without secrets.

Times are those of RFC 3339. The names of fields are the names in their JSON, on which scripts rely.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import QuerySet

from accounts.keys import keys
from accounts.models import AdminKey, ApiKey, Organization, Role, User
from accounts.organizations import with_working_keys
from core import clock
from core.clock import iso_milliseconds


class OrganizationFacts(msgspec.Struct):
    """A limit is ``unlimited`` or a number."""

    name: str
    organization_id: str
    status: str
    plan: str
    priority: str
    working_keys: int
    requests_per_minute: int | str
    tokens_per_minute: int | str
    speech_requests_per_minute: int | str
    speech_characters_per_day: int | str
    diagnostic_captures: bool
    created_at: str


class KeyFacts(msgspec.Struct):
    """A limit is a number, or null where only the organization's applies; so is ``priority``."""

    prefix: str
    api_key_id: str
    organization: str
    label: str
    scope: str
    status: str
    requests_per_minute: int | None
    tokens_per_minute: int | None
    priority: str | None
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None


class AdminKeyFacts(msgspec.Struct):
    prefix: str
    admin_key_id: str
    label: str
    status: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class UserFacts(msgspec.Struct):
    email: str
    user_id: str
    active: bool
    operator: bool
    superuser: bool
    organizations: list[str]
    owner_of: list[str]
    last_login: str | None


def organizations(rows: QuerySet[Organization]) -> Iterator[OrganizationFacts]:
    now = clock.now()
    row: Any
    for row in with_working_keys(rows):
        yield OrganizationFacts(
            name=row.name,
            organization_id=str(row.pk),
            status="disabled" if row.disabled_at and row.disabled_at <= now else "enabled",
            plan=row.plan,
            priority=row.priority,
            working_keys=row.keys or 0,
            requests_per_minute=_limit(row.requests_per_minute),
            tokens_per_minute=_limit(row.tokens_per_minute),
            speech_requests_per_minute=_limit(row.speech_requests_per_minute),
            speech_characters_per_day=_limit(row.speech_characters_per_day),
            diagnostic_captures=row.captures_allowed,
            created_at=iso_milliseconds(row.created_at),
        )


def organization(row: Organization) -> OrganizationFacts:
    """The facts of one, read again."""
    return next(organizations(Organization.objects.filter(pk=row.pk)))


def api_keys(rows: QuerySet[ApiKey]) -> Iterator[KeyFacts]:
    for row in rows.select_related("organization"):
        yield KeyFacts(
            prefix=row.prefix,
            api_key_id=str(row.pk),
            organization=row.organization.name,
            label=row.label,
            scope=row.scope,
            status=keys.status(row).value,
            requests_per_minute=row.requests_per_minute,
            tokens_per_minute=row.tokens_per_minute,
            priority=row.priority,
            created_at=iso_milliseconds(row.created_at),
            last_used_at=_time(row.last_used_at),
            expires_at=_time(row.expires_at),
            revoked_at=_time(row.revoked_at),
        )


def admin_keys(rows: QuerySet[AdminKey]) -> Iterator[AdminKeyFacts]:
    for row in rows:
        yield AdminKeyFacts(
            prefix=row.prefix,
            admin_key_id=str(row.pk),
            label=row.label,
            status=keys.status(row).value,
            created_at=iso_milliseconds(row.created_at),
            expires_at=_time(row.expires_at),
            revoked_at=_time(row.revoked_at),
        )


def users(rows: QuerySet[User]) -> Iterator[UserFacts]:
    for row in rows.prefetch_related("memberships__organization"):
        memberships = sorted((each.organization.name, each.role) for each in row.memberships.all())
        yield UserFacts(
            email=row.email,
            user_id=str(row.pk),
            active=row.is_active,
            operator=row.is_staff,
            superuser=row.is_superuser,
            organizations=[name for name, _ in memberships],
            owner_of=[name for name, role in memberships if role == Role.OWNER],
            last_login=_time(row.last_login),
        )


def _limit(value: int | None) -> int | str:
    return "unlimited" if value is None else value


def _time(value: datetime | None) -> str | None:
    return None if value is None else iso_milliseconds(value)
