"""The ledger in the admin: read, never written."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from svc_project.lib.money import cost_text, price_text, sum_costs, token_cost
from usage import speech_admin  # noqa: F401  # registers the pages of the speech rows
from usage.admin_filters import AdmittedFilter
from usage.admin_reading import RequestsAdmin, link
from usage.models import UsageRow


@admin.register(UsageRow)
class UsageRowAdmin(RequestsAdmin):
    """Chat requests; each shows its own sum written out."""

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
    shown: ClassVar[tuple[str, ...]] = (*RequestsAdmin.shown, "model_id")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "cost"]

    @admin.display(description="input")
    def input_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_input_tokens:,}"

    @admin.display(description="output")
    def output_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_output_tokens:,}"

    @admin.display(description="model")
    def shown_model_id(self, row: UsageRow) -> str:
        # The catalog is above the ledger, so it is known by its address only. A published entry
        # is never deleted, and only published ones have rows.
        return link("inference_modelentry", row.model_id, row.model_identifier)

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


def _sum(row: UsageRow) -> list[tuple[str, int, Any, Any]]:
    """The terms of the row's cost: name, tokens, stamped price, amount."""
    return [
        (name, tokens, price, token_cost(tokens, price))
        for name, tokens, price in (
            ("input", row.backend_reported_input_tokens, row.input_price_per_mtok),
            ("output", row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
    ]
