"""The page about a customer: what it spends, how its requests fail, its limits, keys, members and changes."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse

from accounts import members
from accounts.keys import keys, visits
from accounts.models import ApiKey, AuditEntry, Membership, Organization
from core import clock
from core.clock import midnight
from core.ids import NIL_UUID
from inference.catalog.snapshot import read_models
from inference.console.overview import LimitLine, limit_lines
from svc_project.admin import roles
from svc_project.admin.bars import Bar, bars
from usage.queries.everyone import By, Entry, sums, totals
from usage.queries.failures import Failure, failures
from usage.queries.health import sample
from usage.queries.periods import Period
from usage.refusals.reading import counted

DAYS: Final = 30
_MOST_KEYS: Final = 50
_MOST_MEMBERS: Final = 50
_MOST_ENTRIES: Final = 10
_MOST_FAILURES: Final = 25
_MOST_REFUSED: Final = 10
_ROWS: Final = "admin:usage_usagerow_changelist"


@dataclass(frozen=True, slots=True)
class Day:
    """A UTC day of a customer; ``costs`` has an entry for each currency."""

    day: date
    requests: int
    failed: int
    costs: Sequence[Entry]
    rows: str
    failed_rows: str
    """Addresses of the list with exactly these rows."""


@dataclass(frozen=True, slots=True)
class Spend:
    """Chats of 30 days, the newest day first."""

    days: Sequence[Day]
    totals: Sequence[Entry]
    cost_bars: Sequence[Bar]
    failed_bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures that have code, server, model and key in common."""

    failure: Failure
    key: str
    rows: str


@dataclass(frozen=True, slots=True)
class Failing:
    """The failures of 30 days, most frequent first. ``left_out``: kinds that are not listed.

    ``unknown``: requests whose outcome is not summed yet.
    """

    count: int
    unknown: int
    causes: Sequence[Cause]
    left_out: int
    rows: str
    since: datetime | None
    """From where rows were searched for causes, if later than 30 days ago."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Requests that were refused with one error. ``model`` is empty where none was found."""

    error: str
    model: str
    count: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key with its state and its requests of 30 days."""

    key: ApiKey
    standing: str
    requests: int


def page(request: HttpRequest, organization_id: uuid.UUID) -> HttpResponse:
    """Show the customer, each part to those who may see it. Raises ``PermissionDenied``, ``Http404``."""
    may = request.user.has_perm
    if not may("accounts.view_organization"):
        raise PermissionDenied
    organization = get_object_or_404(Organization, pk=organization_id)
    now = clock.now()
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": organization.name,
        "organization": organization,
        "may_open_console": may(visits.PERMISSION),
        "is_disabled": organization.disabled_at is not None and organization.disabled_at <= now,
        "days": DAYS,
    }
    used: dict[str, int] = {}
    if may("usage.view_usagerow"):
        period = Period(midnight(now.date() - timedelta(days=DAYS - 1)), now + timedelta(hours=1))
        by_key = sums(period, (By.API_KEY,), organization_id=str(organization.pk))
        used = {entry.key[0]: entry.requests for entry in by_key}
        context |= _chats(organization, period, now, names_keys=may("accounts.view_apikey"))
    if may("accounts.view_apikey"):
        context["keys"] = _keys(organization, used)
    if may("accounts.view_membership"):
        rows = Membership.objects.filter(organization=organization).select_related("user")
        context["members"] = rows.order_by("user__email")[:_MOST_MEMBERS]
        context["has_owner"] = members.has_owner(organization)
        context["may_set_roles"] = getattr(request.user, "is_superuser", False)
        context["may_appoint"] = request.user.has_perms(roles.RIGHTS) and not context["has_owner"]
    if may("accounts.view_auditentry"):
        entries = AuditEntry.objects.filter(organization_id=organization.pk)
        context["hidden_kind"] = "" if "keys" in context else str(ApiKey._meta.verbose_name)
        context["entries"] = entries.order_by("-at")[:_MOST_ENTRIES]
    return TemplateResponse(request, "admin/customer.html", context)


def _chats(
    organization: Organization, period: Period, now: datetime, *, names_keys: bool
) -> dict[str, Any]:
    """The parts of the page that come from the ledger. Prefixes and labels are in it with ``names_keys``."""
    spend = _spend(organization, period)
    found = failures(organization.pk, period.start)
    shown = found.groups[:_MOST_FAILURES]
    used = {each.api_key_id for each in shown}
    names = _key_names(used) if names_keys else _key_ids(used)
    since = _stamp(found.since)
    return {
        "spend": spend,
        "failing": Failing(
            count=sum(entry.failed for entry in spend.totals),
            unknown=sum(entry.unknown for entry in spend.totals),
            causes=[_cause(organization, each, names, since) for each in shown],
            left_out=len(found.groups) - len(shown),
            rows=_rows(organization, outcome="failed", occurred_at__gte=_stamp(period.start)),
            since=found.since if found.since > period.start else None,
        ),
        "limits": _limits(organization, now, names_keys=names_keys),
        "refused": _refused(organization, period),
    }


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _rows(organization: Organization, **lookups: str) -> str:
    """The address of the list of the customer's chats that fit ``lookups``."""
    return f"{reverse(_ROWS)}?{urlencode({'q': str(organization.pk), **lookups})}"


def _spend(organization: Organization, period: Period) -> Spend:
    entries = sums(period, (By.DAY,), organization_id=str(organization.pk))
    first = period.start.date()
    days = []
    for number in range(DAYS):
        day = first + timedelta(days=number)
        costs = [entry for entry in entries if entry.key[0] == day.isoformat()]
        within = {
            "occurred_at__gte": _stamp(midnight(day)),
            "occurred_at__lt": _stamp(midnight(day) + timedelta(days=1)),
        }
        days.append(
            Day(
                day=day,
                requests=sum(entry.requests for entry in costs),
                failed=sum(entry.failed for entry in costs),
                costs=costs,
                rows=_rows(organization, **within),
                failed_rows=_rows(organization, outcome="failed", **within),
            )
        )
    return Spend(
        days=days[::-1],
        totals=totals(entries),
        cost_bars=bars([(_cost_title(day), float(_cost(day))) for day in days]),
        failed_bars=bars(
            [
                (f"{day.day:%-d %b %Y}: {day.failed:,} of {day.requests:,}", day.failed)
                for day in days
            ]
        ),
    )


def _cost(day: Day) -> Decimal:
    return sum((entry.cost for entry in day.costs), Decimal(0))


def _cost_title(day: Day) -> str:
    costs = ", ".join(f"{entry.cost:.2f} {entry.currency}" for entry in day.costs) or "nothing"
    return f"{day.day:%-d %b %Y}: {costs}"


def _cause(
    organization: Organization, failure: Failure, names: Mapping[uuid.UUID, str], since: str
) -> Cause:
    fixed = {
        "outcome": "failed",
        "occurred_at__gte": since,
        "model_identifier": failure.model_identifier,
        "api_key_id": str(failure.api_key_id),
    }
    for name in ("error_code", "model_server"):
        value = getattr(failure, name)
        fixed |= {name: value} if value is not None else {f"{name}__isnull": "True"}
    key = names.get(failure.api_key_id, str(failure.api_key_id))
    return Cause(failure, key, _rows(organization, **fixed))


def _key_names(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    rows = ApiKey.objects.filter(pk__in=ids).values_list("pk", "prefix", "label")
    named = {pk: f"{prefix}… {label}".strip() for pk, prefix, label in rows}
    return {NIL_UUID: "without a key", **named}


def _key_ids(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Names of keys for those who may not see keys: the end of each id."""
    return {**{pk: f"key …{str(pk)[-8:]}" for pk in ids}, NIL_UUID: "without a key"}


def _limits(organization: Organization, now: datetime, *, names_keys: bool) -> list[LimitLine]:
    """Every limit on chats beside the busiest minute of 24 hours."""
    day = Period(now - timedelta(days=1), now + timedelta(minutes=1))
    models = read_models(Q(limits__organization=organization))
    lines = limit_lines(organization, models, sample(str(organization.pk), day))
    if names_keys:
        return lines
    # No model's identifier has a blank.
    return [
        replace(line, owner="A key") if line.owner.startswith("Key ") else line for line in lines
    ]


def _refused(organization: Organization, period: Period) -> list[Refused] | None:
    """The most frequent refusals, over all keys; None where they were not counted."""
    found = counted(str(organization.pk), period)
    if found is None:
        return None
    sums: Counter[tuple[str, str]] = Counter()
    for each in found:
        sums[each.error, each.model] += each.count
    return [Refused(*kind, count) for kind, count in sums.most_common(_MOST_REFUSED)]


def _keys(organization: Organization, requests: Mapping[str, int]) -> list[Key]:
    found = keys.of_organization(organization, live=True).order_by("-last_used_at", "-created_at")
    return [
        Key(key, str(keys.status(key).label), requests.get(str(key.pk), 0))
        for key in found[:_MOST_KEYS]
    ]
