"""The ledger in the admin: read, never written."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join

from accounts.models import ApiKey, Organization
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.ids import NIL_UUID
from svc_project.lib.money import cost_text, price_text, sum_costs, token_cost
from usage.admin_filters import AdmittedFilter, BoundedPaginator
from usage.models import UsageRow

if TYPE_CHECKING:  # generic in the stubs only
    RowAdmin = admin.ModelAdmin[UsageRow]
else:
    RowAdmin = admin.ModelAdmin

_SHOWN = ("occurred_at", "organization_id", "api_key_id", "model_id")


@admin.register(UsageRow)
class UsageRowAdmin(RowAdmin):
    """Rows by their ids, which is by time; each shows its own sum written out.

    Nothing here reads the ledger from end to end: lists walk the primary key backwards, counts
    stop early, searches are exact and use an index.
    """

    list_display = (
        "request_id",
        "shown_occurred_at",
        "model_identifier",
        "outcome",
        "input_tokens",
        "output_tokens",
        "total_cost",
    )
    list_filter = (AdmittedFilter, "outcome", "streamed", "shape", "reconciliation")
    # Only that the search field appears; ``get_search_results`` decides what it finds.
    search_fields = ("request_id",)
    search_help_text = (
        "A request id, an organization's id or name, or a key's id or prefix; each whole. "
        "Searches all times unless one is chosen."
    )
    ordering: ClassVar[tuple[str, ...]] = ("-request_id",)
    sortable_by = ()
    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    # Facets count the rows of every choice of every filter.
    show_facets = admin.ShowFacets.NEVER
    actions = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[UsageRow], search_term: str
    ) -> tuple[QuerySet[UsageRow], bool]:
        """Exactly what is named by ``search_term``; an unknown name finds nothing."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith("req_"):
            return queryset.filter(request_id=term), False
        api_key = ApiKey.objects.filter(**_named(term, "prefix", term.rstrip("…"))).first()
        if api_key is not None:
            # With the organization the index usage_by_organization serves.
            queryset = queryset.filter(
                organization_id=api_key.organization_id, api_key_id=api_key.pk
            )
        else:
            organization = Organization.objects.filter(**_named(term, "name", term)).first()
            if organization is None:
                return queryset.none(), False
            queryset = queryset.filter(organization_id=organization.pk)
        return queryset.order_by("-occurred_at", "-request_id"), False

    def get_readonly_fields(self, request: HttpRequest, obj: UsageRow | None = None) -> list[str]:
        return list(self.get_fields(request, obj))

    def get_fields(self, request: HttpRequest, obj: UsageRow | None = None) -> Any:
        shown = (field.name for field in UsageRow._meta.fields)
        return [*(f"shown_{name}" if name in _SHOWN else name for name in shown), "cost"]

    @admin.display(description="occurred at")
    def shown_occurred_at(self, row: UsageRow) -> str:
        return iso_milliseconds(row.occurred_at)

    @admin.display(description="input")
    def input_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_input_tokens:,}"

    @admin.display(description="output")
    def output_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_output_tokens:,}"

    @admin.display(description="organization")
    def shown_organization_id(self, row: UsageRow) -> str:
        organization = Organization.objects.filter(pk=row.organization_id).first()
        return _link("accounts_organization", row.organization_id, organization)

    @admin.display(description="API key")
    def shown_api_key_id(self, row: UsageRow) -> str:
        if row.api_key_id == NIL_UUID:
            return "unattributed"
        return _link(
            "accounts_apikey", row.api_key_id, ApiKey.objects.filter(pk=row.api_key_id).first()
        )

    @admin.display(description="model")
    def shown_model_id(self, row: UsageRow) -> str:
        # The catalog is above the ledger, so it is known by its address only. A published entry
        # is never deleted, and only published ones have rows.
        return _link("inference_modelentry", row.model_id, row.model_identifier)

    @admin.display(description="cost")
    def total_cost(self, row: UsageRow) -> str:
        return f"{cost_text(sum_costs(amount for *_, amount in _sum(row)))} {row.price_currency}"

    @admin.display(description="cost (provisional)")
    def cost(self, row: UsageRow) -> str:
        lines = format_html_join(
            "",
            "<div>{}: {} / 1 000 000 x {} = {}</div>",
            (
                (name, tokens, price_text(price), cost_text(amount))
                for name, tokens, price, amount in _sum(row)
            ),
        )
        return format_html("{}<div>total: <strong>{}</strong></div>", lines, self.total_cost(row))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UsageRow | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: UsageRow | None = None) -> bool:
        return False


def _sum(row: UsageRow) -> list[tuple[str, int, Any, Any]]:
    """The terms of the row's cost: name, tokens, stamped price, amount."""
    return [
        (name, tokens, price, token_cost(tokens, price))
        for name, tokens, price in (
            ("input", row.backend_reported_input_tokens, row.input_price_per_mtok),
            ("output", row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
    ]


def _named(term: str, field: str, value: str) -> dict[str, Any]:
    """How ``term`` names an object: by its id when it is a UUID, else by ``field``."""
    try:
        return {"pk": uuid.UUID(term)}
    except ValueError:
        return {field: value}


def _link(page: str, object_id: uuid.UUID, text: object | None) -> str:
    """A link to the admin page of what still exists (``text``), and the id as the row has it."""
    try:
        address = reverse(f"admin:{page}_change", args=[object_id])
    except NoReverseMatch:
        text = None
    if text is None:
        return f"{object_id} (no longer here)"
    return format_html('<a href="{}">{}</a> {}', address, text, object_id)
