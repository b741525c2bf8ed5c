"""The ledger in the admin: read, never written."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from svc_project.lib.money import cost_text, price_text, token_cost
from usage.models import UsageRow


@admin.register(UsageRow)
class UsageRowAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Rows by time; each shows its own sum written out."""

    list_display = (
        "occurred_at",
        "request_id",
        "model_identifier",
        "outcome",
        "http_status",
        "backend_reported_input_tokens",
        "backend_reported_output_tokens",
        "total_duration_ms",
    )
    list_filter = ("outcome", "streamed", "shape", "reconciliation")
    search_fields = ("=request_id", "=organization_id", "=api_key_id")
    search_help_text = "A request id, organization id or key id, whole."
    date_hierarchy = "occurred_at"
    ordering: ClassVar[tuple[str, ...]] = ("-occurred_at", "-request_id")
    show_full_result_count = False
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: UsageRow | None = None) -> list[str]:
        return [*(field.name for field in UsageRow._meta.fields), "cost"]

    def get_fields(self, request: HttpRequest, obj: UsageRow | None = None) -> Any:
        return self.get_readonly_fields(request, obj)

    @admin.display(description="cost (provisional)")
    def cost(self, row: UsageRow) -> str:
        lines = []
        total = None
        for name, tokens, price in (
            ("input", row.backend_reported_input_tokens, row.input_price_per_mtok),
            ("output", row.backend_reported_output_tokens, row.output_price_per_mtok),
        ):
            amount = token_cost(tokens, price)
            total = amount if total is None else total + amount
            lines.append(
                f"{name}: {tokens} / 1 000 000 x {price_text(price)} = {cost_text(amount)}"
            )
        lines.append(f"total: {cost_text(total or token_cost(0, row.input_price_per_mtok))}")
        return f"{'; '.join(lines)} {row.price_currency}"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: UsageRow | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: UsageRow | None = None) -> bool:
        return False
