"""The admin pages of models and weights records."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core import clock
from core.admin.columns import NOTHING, Tone, badge, number_column
from core.money import price_text
from inference.admin import backends, captures, facts  # noqa: F401  # registers their pages
from inference.admin.prices import PricedAdmin, PriceInline
from inference.catalog.lifecycle import Status, status
from inference.catalog.model_object import served
from inference.catalog.snapshot import read_models
from inference.models import Deployment, ModelEntry, ModelLimit, Price, WeightsRecord
from usage.admin import sums_page

SOON = timedelta(days=30)


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, str(status.label)) for status in Status]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ModelEntry]
    ) -> QuerySet[ModelEntry]:
        """Filter in SQL by the same rules as ``inference.catalog.lifecycle.status``."""
        now = clock.now()
        retired = Q(shutdown_at__lte=now)
        conditions = {
            Status.DRAFT.value: Q(published_at__isnull=True),
            Status.ACTIVE.value: Q(published_at__isnull=False, superseded_at__isnull=True),
            Status.SUPERSEDED.value: Q(superseded_at__isnull=False)
            & (Q(shutdown_at__isnull=True) | Q(shutdown_at__gt=now)),
            Status.RETIRED.value: retired,
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class ShuttingDownFilter(admin.SimpleListFilter):
    title = "shutdown"
    parameter_name = "shutdown"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("soon", f"Within {SOON.days} days")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ModelEntry]
    ) -> QuerySet[ModelEntry]:
        if self.value() != "soon":
            return queryset
        now = clock.now()
        return queryset.filter(shutdown_at__gt=now, shutdown_at__lte=now + SOON)


if TYPE_CHECKING:  # generic in the stubs only
    LimitTabularInline = admin.TabularInline[ModelLimit, ModelEntry]
    WeightsModelAdmin = admin.ModelAdmin[WeightsRecord]
else:
    LimitTabularInline = admin.TabularInline
    WeightsModelAdmin = admin.ModelAdmin

_LIFECYCLE = ("status", "published_at", "superseded_by", "superseded_at", "shutdown_at", "id")
_FACTS = ("to_publish", "served_by", "called_by")
_SEE_BACKENDS = ("inference.view_backend", "inference.change_backend")
_FIGURES = (
    "context_length",
    "max_request_bytes",
    "default_max_output_tokens",
    "tool_calling",
    "structured_output",
    "extra_fields",
    "defaults",
    "keep_alive_seconds",
)


_TONES: Final = {
    Status.DRAFT: Tone.QUIET,
    Status.ACTIVE: Tone.GOOD,
    Status.SUPERSEDED: Tone.WARN,
    Status.RETIRED: Tone.QUIET,
}


def _is_retired(entry: ModelEntry) -> bool:
    return status(entry, clock.now()) is Status.RETIRED


class ModelLimitInline(LimitTabularInline):
    model = ModelLimit
    extra = 0
    autocomplete_fields = ("organization",)
    verbose_name_plural = "limits of single organizations"


@admin.register(ModelEntry)
class ModelEntryAdmin(PricedAdmin):
    list_display = (
        "identifier",
        "status",
        "served_on",
        "price",
        "context",
        "tool_calling",
        "structured_output",
    )
    list_filter = (StatusFilter, ShuttingDownFilter, "tool_calling", "structured_output")
    search_fields = ("identifier", "weights__name")
    autocomplete_fields = ("weights",)
    actions = None
    inlines = (PriceInline, ModelLimitInline)
    fieldsets = (
        (None, {"fields": ("identifier", "weights", *_FIGURES)}),
        ("Lifecycle", {"fields": (*_LIFECYCLE, "to_publish")}),
        ("Served and called", {"fields": ("served_by", "called_by")}),
        ("As served", {"fields": ("as_served",)}),
    )

    context = number_column("context_length", "context, tokens")

    class Media:
        css = {"all": ("inference/admin.css",)}  # noqa: RUF012  # as Django declares it

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelEntry]:
        in_force = (
            Price.objects.standing()
            .filter(entry=OuterRef("pk"), effective_from__lte=clock.now())
            .order_by("-effective_from")
        )
        serving = (
            Deployment.objects.filter(
                weights=OuterRef("weights"), enabled=True, draining=False, backend__enabled=True
            )
            .order_by()
            .values("weights")
            .annotate(number=Count("pk"))
        )
        return (
            super()
            .get_queryset(request)
            .select_related("superseded_by")
            .annotate(
                price_input=Subquery(in_force.values("input_per_mtok")[:1]),
                price_output=Subquery(in_force.values("output_per_mtok")[:1]),
                price_currency=Subquery(in_force.values("currency")[:1]),
                served_by_backends=Subquery(serving.values("number")),
            )
        )

    def get_fieldsets(self, request: HttpRequest, obj: ModelEntry | None = None) -> Any:
        """Show who serves and calls the model to those who may see that, and what a draft lacks."""
        hidden = set()
        if not any(map(request.user.has_perm, _SEE_BACKENDS)):
            hidden.add("served_by")
        if not request.user.has_perm(sums_page.PERMISSION):
            hidden.add("called_by")
        if obj is None or obj.published_at is not None:
            hidden.add("to_publish")
        shown = (
            (title, options, [name for name in options["fields"] if name not in hidden])
            for title, options in super().get_fieldsets(request, obj)
        )
        return [
            (title, {**options, "fields": fields}) for title, options, fields in shown if fields
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: ModelEntry | None = None
    ) -> tuple[str, ...]:
        shown = (*_LIFECYCLE, *_FACTS, "as_served")
        if obj is None or obj.published_at is None:
            return shown
        pinned = (*shown, "identifier", "weights")
        return (*pinned, *_FIGURES) if _is_retired(obj) else pinned

    def has_delete_permission(self, request: HttpRequest, obj: ModelEntry | None = None) -> bool:
        is_draft = obj is not None and obj.published_at is None
        return is_draft and super().has_delete_permission(request, obj)

    @admin.display(description="status", ordering="shutdown_at")
    def status(self, entry: ModelEntry) -> str:
        now = clock.now()
        standing = status(entry, now)
        text = str(standing.label).lower()
        if standing is Status.SUPERSEDED and entry.shutdown_at is not None:
            days = (entry.shutdown_at - now).days
            text += f", {days} days left" if days else ", last day"
        return badge(text, _TONES[standing])

    @admin.display(description="backends", ordering="served_by_backends")
    def served_on(self, entry: Any) -> SafeString | int:
        """Enabled backends that serve its weights."""
        number = int(entry.served_by_backends or 0)
        is_offered = status(entry, clock.now()) in (Status.ACTIVE, Status.SUPERSEDED)
        return badge("none", Tone.BAD) if is_offered and not number else number

    @admin.display(description="price in / out per million tokens")
    def price(self, entry: Any) -> str:
        if entry.price_currency is None:
            return "none"
        amounts = f"{price_text(entry.price_input)} / {price_text(entry.price_output)}"
        return f"{amounts} {entry.price_currency}"

    @admin.display(description="to publish it")
    def to_publish(self, entry: ModelEntry) -> str:
        return facts.to_publish(entry)

    @admin.display(description="served by")
    def served_by(self, entry: ModelEntry) -> str:
        return NOTHING if entry._state.adding else facts.served_by(entry)

    @admin.display(description="called in 7 days by")
    def called_by(self, entry: ModelEntry) -> str:
        return NOTHING if entry._state.adding else facts.called_by(entry)

    @admin.display(description="GET /v1/models/{id}")
    def as_served(self, entry: ModelEntry) -> str:
        standing = status(entry, clock.now()) if entry.pk else Status.DRAFT
        if standing is Status.DRAFT:
            return "Not served: a draft answers 404 model_not_found."
        if standing is Status.RETIRED:
            return "Not served: its shutdown date has passed; it answers 404 model_retired."
        model = read_models(Q(pk=entry.pk))[entry.identifier]
        body = msgspec.json.format(msgspec.json.encode(served(model, time.time())), indent=2)
        return format_html('<pre class="svc-served" tabindex="0">{}</pre>', body.decode())


@admin.register(WeightsRecord)
class WeightsRecordAdmin(WeightsModelAdmin):
    """Weights records can be added, but not changed."""

    list_display = ("name", "source", "revision", "quantization", "tokenizer", "created_at")
    search_fields = ("name", "source")
    actions = None

    def has_change_permission(self, request: HttpRequest, obj: WeightsRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: WeightsRecord | None = None) -> bool:
        is_unused = obj is not None and not obj.entries.exists()
        return is_unused and super().has_delete_permission(request, obj)
