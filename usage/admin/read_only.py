"""Bases, filters and counts of the ledger's admin pages: read-only, and never a scan of the whole ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.models import ApiKey, Organization
from core import clock
from core.admin.columns import Tone, badge, short_id
from core.admin.restrictions import ReadOnly
from core.clock import month_of
from core.ids import NIL_UUID
from usage.models import Outcome
from usage.models.partitions import lower_bound
from usage.queries.health import UNFAILED

if TYPE_CHECKING:  # generic in the stubs only
    RowPaginator = Paginator[Any]
else:
    RowPaginator = Paginator

MOST_COUNTED = 10_000


class BoundedPaginator(RowPaginator):
    """Stops counting at ``MOST_COUNTED``: a full count is slow, and later pages are not used."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]  # the admin gives no list
        return rows.order_by()[:MOST_COUNTED].count()


_SINCE: dict[str, tuple[str, Callable[[datetime], datetime]]] = {
    "hour": ("Past hour", lambda now: now - timedelta(hours=1)),
    "day": ("Past 24 hours", lambda now: now - timedelta(days=1)),
    "month": ("This month", month_of),
    "quarter": ("Past 93 days", lambda now: now - timedelta(days=93)),
}


class AdmittedFilter(admin.SimpleListFilter):
    """Filters by the time of admission, which is in the request id and so in the primary key.

    So the newest rows are found, and old partitions skipped, without an index on the time over all
    organizations. The default is the past 7 days; an exact search covers all rows.
    """

    title = "admitted"
    parameter_name = "admitted"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            *((name, label) for name, (label, _) in _SINCE.items()),
            ("any", "Any time (may be slow)"),
        ]

    def choices(self, changelist: Any) -> Any:
        shown = super().choices(changelist)
        yield {**next(shown), "display": "Past 7 days"}
        yield from shown

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if chosen == "any" or (chosen is None and request.GET.get("q")):
            return queryset
        now = clock.now()
        since = _SINCE[chosen][1](now) if chosen in _SINCE else now - timedelta(days=7)
        return queryset.filter(request_id__gte=lower_bound(since))


class OutcomeFilter(admin.SimpleListFilter):
    """Filters by outcome; ``failed`` is any failure, as the overview and the console count it."""

    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        outcomes = model_admin.model._meta.get_field("outcome").choices
        return [("failed", "Any failure"), *((value, value) for value, _ in outcomes)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if chosen is None:
            return queryset
        if chosen == "failed":
            return queryset.exclude(outcome__in=UNFAILED)
        return queryset.filter(outcome=chosen)


if TYPE_CHECKING:  # generic in the stubs only
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin


class LedgerAdmin(ReadOnly, AnyAdmin):
    """A table of the ledger: counts stop early, searches are exact."""

    sortable_by = ()
    list_per_page = 50
    paginator = BoundedPaginator
    # Facets would count the rows of every choice of every filter.
    show_facets = admin.ShowFacets.NEVER

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    @admin.display(description="organization")
    def shown_organization_id(self, row: Any) -> str:
        organization = Organization.objects.filter(pk=row.organization_id).first()
        return link("accounts_organization", row.organization_id, organization)

    @admin.display(description="organization")
    def only_organization(self, row: Any) -> str:
        """The name from ``with_organization``, linked to the rows of this organization only."""
        name = row.organization_name or row.organization_id
        return format_html('<a href="?q={}">{}</a>', row.organization_id, name)


class RequestsAdmin(LedgerAdmin):
    """Rows of one request each, ordered by id and so by time."""

    # Makes the search field appear; ``get_search_results`` does the search.
    search_fields = ("request_id",)
    search_help_text = (
        "A request id, an organization's id or name, or a key's id or prefix; each whole. "
        "Searches all times unless one is chosen."
    )
    ordering: ClassVar[tuple[str, ...]] = ("-request_id",)
    shown: ClassVar[tuple[str, ...]] = ("occurred_at", "organization_id", "api_key_id", "outcome")
    """Fields that a method ``shown_*`` renders."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the exact id or name ``search_term``; an unknown name finds nothing."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith("req_"):
            return queryset.filter(request_id=term), False
        api_key = ApiKey.objects.filter(**_named(term, "prefix", term.rstrip("…"))).first()
        if api_key is not None:
            # With the organization, the index by organization is used.
            queryset = queryset.filter(
                organization_id=api_key.organization_id, api_key_id=api_key.pk
            )
        else:
            organization_id = named_organization(term)
            if organization_id is None:
                return queryset.none(), False
            queryset = queryset.filter(organization_id=organization_id)
        return queryset.order_by("-occurred_at", "-request_id"), False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = (field.name for field in self.model._meta.fields)
        return [f"shown_{name}" if name in self.shown else name for name in names]

    @admin.display(description="occurred at")
    def shown_occurred_at(self, row: Any) -> str:
        return f"{row.occurred_at:%-d %b %Y, %H:%M:%S}.{row.occurred_at.microsecond // 1000:03} UTC"

    @admin.display(description="when")
    def when(self, row: Any) -> str:
        return date_format(row.occurred_at, "DATETIME_FORMAT")

    @admin.display(description="request")
    def short_request_id(self, row: Any) -> SafeString:
        return short_id(row.request_id)

    @admin.display(description="API key")
    def only_key(self, row: Any) -> str:
        """The name from ``with_names``, linked to the rows of this key only."""
        if row.api_key_id == NIL_UUID:
            return "without a key"
        name = row.key_label or (row.key_prefix and f"{row.key_prefix}…") or row.api_key_id
        return format_html('<a href="?q={}">{}</a>', row.api_key_id, name)

    @admin.display(description="outcome")
    def shown_outcome(self, row: Any) -> SafeString:
        return badge(row.outcome, _tone(row.outcome))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_names(super().get_queryset(request))

    @admin.display(description="API key")
    def shown_api_key_id(self, row: Any) -> str:
        if row.api_key_id == NIL_UUID:
            return "without a key"
        return link(
            "accounts_apikey", row.api_key_id, ApiKey.objects.filter(pk=row.api_key_id).first()
        )


def _tone(outcome: str) -> Tone:
    if outcome == Outcome.SUCCESS:
        return Tone.GOOD
    return Tone.QUIET if outcome in UNFAILED else Tone.BAD


def with_names(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate ``rows`` as ``with_organization`` does, and with ``key_label`` and ``key_prefix``."""
    api_key = ApiKey.objects.filter(pk=OuterRef("api_key_id"))
    named: QuerySet[Any] = with_organization(rows).annotate(
        key_label=Subquery(api_key.values("label")), key_prefix=Subquery(api_key.values("prefix"))
    )
    return named


def with_organization(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate ``rows`` with ``organization_name``, the organization's current name or None."""
    organization = Organization.objects.filter(pk=OuterRef("organization_id"))
    named: QuerySet[Any] = rows.annotate(organization_name=Subquery(organization.values("name")))
    return named


def named_organization(term: str) -> uuid.UUID | None:
    """The id of the organization with the id or name ``term``."""
    organization = Organization.objects.filter(**_named(term, "name", term)).first()
    return None if organization is None else organization.pk


def _named(term: str, field: str, value: str) -> dict[str, Any]:
    """The lookup for ``term``: by id when it is a UUID, else by ``field``."""
    try:
        return {"pk": uuid.UUID(term)}
    except ValueError:
        return {field: value}


def link(page: str, object_id: uuid.UUID, text: object | None) -> str:
    """The id as the row has it, with a link to the admin page if the object exists (``text``)."""
    try:
        address = reverse(f"admin:{page}_change", args=[object_id])
    except NoReverseMatch:
        text = None
    if text is None:
        return f"{object_id} (no longer here)"
    return format_html('<a href="{}">{}</a> {}', address, text, object_id)
