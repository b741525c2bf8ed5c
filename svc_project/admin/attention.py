"""Who fails more than before, on the admin's home: organizations and model servers, worst first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from accounts.models import Organization
from inference.models import Backend
from usage.queries import failures
from usage.queries.failures import Comparison, Rate, compare

MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Line:
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
    """The failures of 24 hours against the seven days before. ``most``: rows read, where that is not all."""

    organizations: Sequence[Line]
    servers: Sequence[Line]
    most: int | None


def attention(now: datetime) -> Attention:
    """Read who fails. Raises ``django.db.Error``."""
    found = compare(now)
    worst = found.organizations[:MOST_SHOWN], found.servers[:MOST_SHOWN]
    owners = Organization.objects.filter(pk__in=[rate.key for rate in worst[0]])
    names = {str(pk): name for pk, name in owners.values_list("pk", "name")}
    servers = Backend.objects.filter(name__in=[rate.key for rate in worst[1]])
    backends = {name: str(pk) for pk, name in servers.values_list("pk", "name")}
    pages: dict[str, Callable[[str], tuple[str, str]]] = {
        "q": lambda key: (
            names.get(key, key),
            reverse("admin:customer", args=[key]) if key in names else "",
        ),
        "model_server": lambda key: (
            key,
            reverse("admin:inference_backend_change", args=[backends[key]])
            if key in backends
            else "",
        ),
    }
    organizations, model_servers = (
        [_line(found, rate, column, *pages[column](rate.key)) for rate in rates]
        for column, rates in zip(pages, worst, strict=True)
    )
    return Attention(organizations, model_servers, failures.MOST_COMPARED if found.capped else None)


def _line(found: Comparison, rate: Rate, column: str, name: str, address: str) -> Line:
    """``column`` selects the rows of ``rate`` in the list of rows."""
    late = {"request_id__gte": found.first}
    before = {"request_id__gte": found.first_before, "request_id__lt": found.end_before}

    def rows(**lookups: str) -> str:
        query = urlencode({"admitted": "any", column: rate.key, **lookups})
        return f"{reverse('admin:usage_usagerow_changelist')}?{query}"

    return Line(
        name=name,
        address=address,
        rate=rate,
        failed_rows=rows(outcome="failed", **late),
        rows=rows(**late),
        failed_before_rows=rows(outcome="failed", **before),
    )
