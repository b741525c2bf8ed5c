"""Who fails more than before, on the admin's home: organizations and model servers, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from accounts.models import Organization
from inference.models import Backend
from usage.queries import failures
from usage.queries.failures import Rate, compare

MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class FailureLine:
    """An organization, or a model server, with the addresses of exactly the rows that each number counts."""

    name: str
    address: str
    """Its page; empty where it is no longer here."""
    rate: Rate
    failed_rows: str
    rows: str
    failed_before_rows: str


@dataclass(frozen=True, slots=True)
class Attention:
    """The failures of 24 hours against the seven days before.

    ``unknown``: requests of organizations whose outcome is not summed yet. ``most``: requests at model
    servers that were read, where that is not all.
    """

    organizations: Sequence[FailureLine]
    unknown: int
    servers: Sequence[FailureLine]
    most: int | None


def attention(now: datetime) -> Attention:
    """Read who fails. Raises ``django.db.Error``."""
    found = compare(now)
    worst = found.organizations[:MOST_SHOWN], found.servers[:MOST_SHOWN]
    owners = Organization.objects.filter(pk__in=[rate.key for rate in worst[0]])
    names = {str(pk): name for pk, name in owners.values_list("pk", "name")}
    servers = Backend.objects.filter(name__in=[rate.key for rate in worst[1]])
    backends = {name: str(pk) for pk, name in servers.values_list("pk", "name")}
    since, before = found.since.isoformat(), found.before.isoformat()
    ended = {"occurred_at__gte": since}, {"occurred_at__gte": before, "occurred_at__lt": since}
    organizations = [
        _line(
            rate,
            names.get(rate.key, rate.key),
            reverse("admin:customer", args=[rate.key]) if rate.key in names else "",
            *({"q": rate.key, **each} for each in ended),
        )
        for rate in worst[0]
    ]
    admitted = (
        {"request_id__gte": found.first},
        {"request_id__gte": found.first_before, "request_id__lt": found.end_before},
    )
    model_servers = [
        _line(
            rate,
            rate.key,
            reverse("admin:inference_backend_change", args=[backends[rate.key]])
            if rate.key in backends
            else "",
            *({"model_server": rate.key, **each} for each in admitted),
        )
        for rate in worst[1]
    ]
    most = failures.MOST_COMPARED if found.capped else None
    return Attention(organizations, found.unknown, model_servers, most)


def _line(
    rate: Rate, name: str, address: str, late: dict[str, str], before: dict[str, str]
) -> FailureLine:
    """``late`` and ``before`` select the rows of each part in the list of rows."""

    def rows(**lookups: str) -> str:
        query = urlencode({"admitted": "any", **lookups})
        return f"{reverse('admin:usage_usagerow_changelist')}?{query}"

    return FailureLine(
        name=name,
        address=address,
        rate=rate,
        failed_rows=rows(outcome="failed", **late),
        rows=rows(**late),
        failed_before_rows=rows(outcome="failed", **before),
    )
