"""Addresses with which a page of requests is watched, and the moment up to which its rows are complete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from accounts.console.addresses import reverse
from accounts.models import Organization
from core import clock
from usage.console.query_string import PageQuery
from usage.ledger.completeness import completeness
from usage.queries import cursors
from usage.queries.latest import before_all_at
from usage.queries.periods import Period

PATH: Final = "/console/requests/live"
"""The address of the WebSocket."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Addresses for the page's script. ``after``: a cursor; all earlier rows have been shown."""

    socket: str
    newer: str
    after: str


def watch_of(organization: Organization, period: Period, page_query: PageQuery) -> Watch | None:
    """Return how to watch the list of ``page_query``; None when its period does not contain this moment.

    Call it before the rows are read. Raises ``django.db.Error``.
    """
    if not period.start <= clock.now() < period.end:
        return None
    owner = str(organization.pk)
    surface = page_query.parameters.get("surface", "")
    return Watch(
        f"{PATH}?{urlencode({'organization': owner, 'surface': surface})}",
        f"{reverse('console-requests-newer')}{page_query.link()}",
        complete_to(),
    )


def complete_to(earliest: datetime | None = None) -> str:
    """A cursor before which no row can appear any more; never before ``earliest``.

    Raises ``django.db.Error``.
    """
    until = completeness().until
    return cursors.encode(before_all_at(until if earliest is None else max(until, earliest)))
