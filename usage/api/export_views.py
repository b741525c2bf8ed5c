"""GET /v1/usage/export (inference contract, Endpoints; docs/api/usage-export.md)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec
from django.db import connection
from django.http import HttpResponse, StreamingHttpResponse
from django.template.loader import render_to_string
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.keys.authentication import Caller
from accounts.models import Organization
from core.errors import (
    CursorNotSupported,
    InvalidQuery,
    RateLimitExceeded,
    ServerOverloaded,
)
from usage.api.csv_stream import CsvDownload, slots
from usage.api.export import complete_page, csv_blocks
from usage.api.export_columns import ExportRow
from usage.api.summary_views import UsageView
from usage.queries import cursors
from usage.queries.periods import Period, parse_period
from usage.queries.selection import Filters, parse_filters
from usage.retention.pruned_months import require_rows

DEFAULT_LIMIT = 1000
HIGHEST_LIMIT = 10_000
CSV_TYPE = "text/csv; charset=utf-8"


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"


class ExportBody(msgspec.Struct):
    """The JSON response."""

    columns: tuple[str, ...]
    rows: list[ExportRow]
    next_cursor: str | None


class UsageExportView(UsageView):
    """Rows as pages of JSON, or the whole period as one CSV."""

    def get(self, request: Request) -> Response | StreamingHttpResponse:
        parameters = request.query_params
        wanted = _format(parameters)
        if wanted is Format.CSV and parameters.get("cursor"):
            raise CursorNotSupported("A CSV contains the whole period. Leave 'cursor' out.")
        period, filters = parse_period(parameters), parse_filters(parameters)
        require_rows(period)
        if wanted is Format.CSV:
            return self._csv(request, period, filters)
        after = cursors.decode(cursor) if (cursor := parameters.get("cursor")) else None
        page = complete_page(
            self.caller.organization_id, period, filters, _limit(parameters), after
        )
        following = page.next_cursor
        return Response(
            ExportBody(page.columns, page.rows, cursors.encode(following) if following else None)
        )

    def handle_exception(self, exc: Exception) -> Response:
        """Answer a browser's 429 or 503 with a page; programs get every error as JSON."""
        caller: Caller | None = getattr(self, "caller", None)
        if (
            isinstance(exc, RateLimitExceeded | ServerOverloaded)
            and caller is not None
            and caller.user_id
            and _reads_pages(self.request)
        ):
            page = render_to_string("console/export_busy.html", {"problem": exc})
            return HttpResponse(page, status=exc.status, headers=exc.headers)  # type: ignore[return-value]  # DRF passes on any
        return super().handle_exception(exc)

    def _csv(self, request: Request, period: Period, filters: Filters) -> StreamingHttpResponse:
        organization_id = self.caller.organization_id
        name = filename(Organization.objects.get(pk=organization_id), period)
        body: AsyncIterator[bytes] = (
            _nothing()
            if request.method == "HEAD"
            else CsvDownload(
                csv_blocks(organization_id, period, filters), slots.take(organization_id)
            )
        )
        # Else this thread's connection stays open while the download uses its own. A transaction
        # around the view must not be ended here.
        if not connection.in_atomic_block:
            connection.close()
        return StreamingHttpResponse(
            body,
            content_type=CSV_TYPE,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def filename(
    organization: Organization,
    period: Period,
    by: str = "",
    subject: str = "usage",
) -> str:
    """Return a name such as ``usage-acme-2026-11-01-2026-12-01.csv``, with the organization's slug.

    ``by`` is a grouping, such as ``by-model``.
    """
    named = (organization.slug, by, _day(period.start), _day(period.end))
    return f"{subject}-{'-'.join(filter(None, named))}.csv"


def _reads_pages(request: Request) -> bool:
    """Whether the caller is a browser that navigates to the address, not a script on a page."""
    return "text/html" in request.META.get("HTTP_ACCEPT", "")


def _day(moment: datetime) -> str:
    """The day, and the time unless it is midnight, without characters that file names forbid."""
    if moment.time() == moment.time().min:
        return f"{moment:%Y-%m-%d}"
    milliseconds = f"{moment.microsecond // 1000:03d}" if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H%M%S}{milliseconds}Z"


def _format(parameters: Mapping[str, str]) -> Format:
    try:
        return Format(parameters.get("format") or Format.JSON)
    except ValueError:
        raise InvalidQuery("'format' must be json or csv.", param="format") from None


def _limit(parameters: Mapping[str, str]) -> int:
    text = parameters.get("limit") or str(DEFAULT_LIMIT)
    # Refuses a sign, a point, digits of other scripts and numbers too long to convert alike.
    limit = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if not 1 <= limit <= HIGHEST_LIMIT:
        raise InvalidQuery(f"'limit' must be between 1 and {HIGHEST_LIMIT}.", param="limit")
    return limit


async def _nothing() -> AsyncIterator[bytes]:
    """The body of an answer to HEAD."""
    blocks: tuple[bytes, ...] = ()
    for block in blocks:
        yield block
