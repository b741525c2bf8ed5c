"""The ledger in the admin: read, never written."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join

from core.admin.columns import titled
from core.money import cost_text, price_text, sum_costs, token_cost
from usage.admin import (
    speech_rows,  # noqa: F401  # registers the pages of the speech rows
    sums_page,
)
from usage.admin.read_only import AdmittedFilter, OutcomeFilter, RequestsAdmin, link
from usage.models import UsageRow
from usage.templatetags.formats import single
from usage.templatetags.story import request_story

_STORY: Final = ("model_server", "attempts", "queue_ms", "story")
"""What happened to the request, beside how it ended."""


@admin.register(UsageRow)
class UsageRowAdmin(RequestsAdmin):
    """Chat requests; each shows how its cost was computed."""

    list_display = (
        "when",
        "only_organization",
        "only_key",
        "model_identifier",
        "shown_outcome",
        "model_server",
        "input_tokens",
        "output_tokens",
        "total_cost",
        "short_request_id",
    )
    list_filter = (
        *(AdmittedFilter, OutcomeFilter, "streamed", "reconciliation"),
        ("shape", titled(admin.ChoicesFieldListFilter, "kind")),
    )
    shown: ClassVar[tuple[str, ...]] = (*RequestsAdmin.shown, "model_id")

    def get_urls(self) -> list[URLPattern]:
        sums = path("sums/", self.admin_site.admin_view(sums_page.page), name="usage_sums")
        return [sums, *super().get_urls()]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = [each for each in super().get_fields(request, obj) if each not in _STORY]
        ending = names.index("error_code") + 1
        return [*names[:ending], *_STORY, *names[ending:], "cost"]

    @admin.display(description="input")
    def input_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_input_tokens:,}"

    @admin.display(description="output")
    def output_tokens(self, row: UsageRow) -> str:
        return f"{row.backend_reported_output_tokens:,}"

    @admin.display(description="model")
    def shown_model_id(self, row: UsageRow) -> str:
        # The ledger must not import the catalog, so the link uses the page's URL. Only published
        # entries have rows, and they are never deleted.
        return link("inference_modelentry", row.model_id, row.model_identifier)

    @admin.display(description="cost")
    def total_cost(self, row: UsageRow) -> str:
        return single(sum_costs(amount for *_, amount in _sum(row)), row.price_currency)

    @admin.display(description="what took how long")
    def story(self, row: UsageRow) -> str:
        return request_story(row)

    @admin.display(description="cost (provisional)")
    def cost(self, row: UsageRow) -> str:
        lines = format_html_join(
            "",
            "<div>{}: {} / 1,000,000 x {} = {}</div>",
            (
                (name, f"{tokens:,}", price_text(price), cost_text(amount))
                for name, tokens, price, amount in _sum(row)
            ),
        )
        total = cost_text(sum_costs(amount for *_, amount in _sum(row)))
        return format_html(
            "{}<div>total: <strong>{} {}</strong></div>", lines, total, row.price_currency
        )


def _sum(row: UsageRow) -> list[tuple[str, int, Any, Any]]:
    """The terms of the row's cost: name, tokens, stamped price, amount."""
    return [
        (name, tokens, price, token_cost(tokens, price))
        for name, tokens, price in (
            ("input", row.backend_reported_input_tokens, row.input_price_per_mtok),
            ("output", row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
    ]
