"""Organizations for the victim and the attackers, made in the gateway's database."""

from __future__ import annotations

import uuid
from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connection
from msgspec import structs

from accounts.keys.keys import KeyLimits, mint
from accounts.models import Membership, Organization, Plan, Scope, User
from tests.resilience.target import Tenant
from usage.models import UsageRow

_KEYS_EACH = 50


def make(name: str) -> tuple[Organization, Tenant]:
    """Make an organization without limits on chats, and its credentials.

    Its limits on speech are those of a new organization.
    """
    organization = Organization.objects.create(
        name=f"{name} {uuid.uuid4()}",
        plan=Plan.ENTERPRISE,
        requests_per_minute=None,
        tokens_per_minute=None,
    )
    user = User.objects.create_user(f"{uuid.uuid4()}@svc.example")
    Membership.objects.create(user=user, organization=organization)
    spent = mint(organization, Scope.INFERENCE, limits=KeyLimits(requests_per_minute=1))
    return organization, Tenant(
        inference=mint(organization, Scope.INFERENCE).secret,
        read=mint(organization, Scope.READ).secret,
        speech=mint(organization, Scope.SPEECH).secret,
        spent=spent.secret,
        organization=organization.slug,
        session=_session_of(user),
    )


def make_victim(new_keys: int) -> tuple[Organization, Tenant]:
    """``make`` without limits on speech, and with unused keys.

    The keys belong to further organizations, since each may have only so many.
    """
    organization, tenant = make("victim")
    organization.speech_requests_per_minute = None
    organization.speech_characters_per_day = None
    organization.save()
    secrets: list[str] = []
    while len(secrets) < new_keys:
        other = Organization.objects.create(name=f"victim {uuid.uuid4()}")
        secrets += [mint(other, Scope.INFERENCE).secret for _ in range(_KEYS_EACH)]
    return organization, structs.replace(tenant, new_keys=tuple(secrets))


def _session_of(user: User) -> str:
    """The session cookie of a login."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    key: str = session.session_key
    return key


def fill_ledger(organization: Organization, like: Organization, count: int) -> None:
    """Give ``organization`` ``count`` rows that are copies of one of ``like``'s.

    The sums by hour do not include them: they serve for downloads.
    """
    row = UsageRow.objects.filter(organization_id=like.pk).first()
    assert row is not None, "one request is needed first"
    names = [str(field.column) for field in UsageRow._meta.concrete_fields]
    changed = {"request_id": _REQUEST_IDS[connection.vendor], "organization_id": "%s"}
    values = ", ".join(changed.get(name, name) for name in names)
    # Both databases store ids of organizations as they compare them.
    identifier = UsageRow._meta.get_field("organization_id").get_db_prep_value(
        organization.pk, connection
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
            f" WHERE n < {count})"
            f" INSERT INTO usage_usagerow ({', '.join(names)})"
            f" SELECT {values} FROM usage_usagerow, numbers WHERE request_id = %s",
            [uuid.uuid4().hex[:16], identifier, row.request_id],
        )


_REQUEST_IDS = {
    "sqlite": "printf('req_' || %s || '%%016x', n)",
    "postgresql": "'req_' || %s || lpad(to_hex(n), 16, '0')",
}
