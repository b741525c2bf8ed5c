"""The operators' pages of the catalog: models, weights records and backends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html

from inference import capture_admin  # noqa: F401  # registers the pages of the captures
from inference.admin_filters import ShuttingDownFilter, StatusFilter
from inference.admin_lifecycle import LifecycleAdmin
from inference.entry import served
from inference.lifecycle import Status, status
from inference.models import Backend, Deployment, ModelEntry, ModelLimit, Price, WeightsRecord
from inference.pool import BackendView
from inference.present import VIEW
from inference.pricing import PriceError, effective_moment
from inference.snapshot import read_models
from svc_project.lib import clock, variables
from svc_project.lib.backend_admin import KeptKeyAdmin
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.money import price_text
from svc_project.lib.worker_views import views

if TYPE_CHECKING:  # generic in the stubs only
    PriceModelForm = forms.ModelForm[Price]
    PriceTabularInline = admin.TabularInline[Price, ModelEntry]
    LimitTabularInline = admin.TabularInline[ModelLimit, ModelEntry]
    DeploymentTabularInline = admin.TabularInline[Deployment, Backend]
    WeightsModelAdmin = admin.ModelAdmin[WeightsRecord]
else:
    PriceModelForm = forms.ModelForm
    PriceTabularInline = admin.TabularInline
    LimitTabularInline = admin.TabularInline
    DeploymentTabularInline = admin.TabularInline
    WeightsModelAdmin = admin.ModelAdmin

_LIFECYCLE = ("status", "published_at", "superseded_by", "superseded_at", "shutdown_at", "id")
_FIGURES = (
    "context_length",
    "max_request_bytes",
    "default_max_output_tokens",
    "tool_calling",
    "structured_output",
)


def _is_retired(entry: ModelEntry) -> bool:
    return status(entry, clock.now()) is Status.RETIRED


class PriceForm(PriceModelForm):
    """A new price; an empty moment means now."""

    effective_from = forms.SplitDateTimeField(
        required=False,
        widget=admin.widgets.AdminSplitDateTime(),
        help_text="UTC; empty: now. Applies to requests from then on; rows already written keep "
        "their price.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "currency" in self.fields:
            self.fields["currency"].initial = settings.SVC_DEFAULT_CURRENCY

    def clean_effective_from(self) -> Any:
        try:
            return effective_moment(self.cleaned_data["effective_from"])
        except PriceError as error:
            raise ValidationError(error.message) from None


class PriceInline(PriceTabularInline):
    """Append-only: what is there is shown, one blank row adds to it."""

    model = Price
    form = PriceForm
    extra = 1
    can_delete = False
    ordering = ("effective_from",)

    def has_add_permission(self, request: HttpRequest, obj: ModelEntry | None = None) -> bool:
        return super().has_add_permission(request, obj) and not (obj and _is_retired(obj))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ModelLimitInline(LimitTabularInline):
    model = ModelLimit
    extra = 0
    autocomplete_fields = ("organization",)
    verbose_name_plural = "limits of single organizations"


@admin.register(ModelEntry)
class ModelEntryAdmin(LifecycleAdmin):
    list_display = (
        "identifier",
        "status",
        "context_length",
        "tool_calling",
        "structured_output",
        "price",
    )
    list_filter = (StatusFilter, ShuttingDownFilter, "tool_calling", "structured_output")
    search_fields = ("identifier", "weights__name")
    autocomplete_fields = ("weights",)
    actions = None
    inlines = (PriceInline, ModelLimitInline)
    fieldsets = (
        (None, {"fields": ("identifier", "weights", *_FIGURES)}),
        ("Lifecycle", {"fields": _LIFECYCLE}),
        ("As served", {"fields": ("as_served",)}),
    )

    class Media:
        css = {"all": ("inference/admin.css",)}  # noqa: RUF012  # as Django declares it

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelEntry]:
        in_force = Price.objects.filter(
            entry=OuterRef("pk"), effective_from__lte=clock.now()
        ).order_by("-effective_from")
        return (
            super()
            .get_queryset(request)
            .select_related("superseded_by")
            .annotate(
                price_input=Subquery(in_force.values("input_per_mtok")[:1]),
                price_output=Subquery(in_force.values("output_per_mtok")[:1]),
                price_currency=Subquery(in_force.values("currency")[:1]),
            )
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: ModelEntry | None = None
    ) -> tuple[str, ...]:
        shown = (*_LIFECYCLE, "as_served")
        if obj is None or obj.published_at is None:
            return shown
        pinned = (*shown, "identifier", "weights")
        return (*pinned, *_FIGURES) if _is_retired(obj) else pinned

    def has_delete_permission(self, request: HttpRequest, obj: ModelEntry | None = None) -> bool:
        is_draft = obj is not None and obj.published_at is None
        return is_draft and super().has_delete_permission(request, obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        for row in formset.new_objects:
            if isinstance(row, Price):
                messages.info(
                    request,
                    f"The new price applies to requests from {iso_milliseconds(row.effective_from)}"
                    " on; rows already written keep theirs.",
                )

    @admin.display(description="status", ordering="shutdown_at")
    def status(self, entry: ModelEntry) -> str:
        now = clock.now()
        standing = status(entry, now)
        text = str(standing.label).lower()
        if standing is Status.SUPERSEDED and entry.shutdown_at is not None:
            days = (entry.shutdown_at - now).days
            text += f", {days} days left" if days else ", last day"
        return format_html('<span class="svc-status svc-{}">{}</span>', standing.value, text)

    @admin.display(description="price in / out per million tokens")
    def price(self, entry: Any) -> str:
        if entry.price_currency is None:
            return "none"
        amounts = f"{price_text(entry.price_input)} / {price_text(entry.price_output)}"
        return f"{amounts} {entry.price_currency}"

    @admin.display(description="GET /v1/models/{id}")
    def as_served(self, entry: ModelEntry) -> str:
        standing = status(entry, clock.now()) if entry.pk else Status.DRAFT
        if standing is Status.DRAFT:
            return "Not served: a draft answers 404 model_not_found."
        if standing is Status.RETIRED:
            return "Not served: its shutdown date has passed; it answers 404 model_retired."
        model = read_models(Q(pk=entry.pk))[entry.identifier]
        body = msgspec.json.format(msgspec.json.encode(served(model, time.time())), indent=2)
        return format_html('<pre class="svc-served">{}</pre>', body.decode())


@admin.register(WeightsRecord)
class WeightsRecordAdmin(WeightsModelAdmin):
    """Added once, then only read."""

    list_display = ("name", "source", "revision", "quantization", "tokenizer", "created_at")
    search_fields = ("name", "source")
    actions = None

    def has_change_permission(self, request: HttpRequest, obj: WeightsRecord | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: WeightsRecord | None = None) -> bool:
        is_unused = obj is not None and not obj.entries.exists()
        return is_unused and super().has_delete_permission(request, obj)


class DeploymentInline(DeploymentTabularInline):
    model = Deployment
    extra = 0
    autocomplete_fields = ("weights",)
    verbose_name_plural = "weights that it serves"


@admin.register(Backend)
class BackendAdmin(KeptKeyAdmin):
    list_display = (
        "name",
        "base_url",
        "enabled",
        "max_concurrency",
        "deployed",
        "health",
        "unreported",
        "problems",
    )
    list_filter = ("enabled", "running_usage")
    search_fields = ("name", "base_url")
    actions = None
    inlines = (DeploymentInline,)
    readonly_fields = ("health", "unreported", "problems")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Backend]:
        serving = Count("deployments", filter=Q(deployments__enabled=True))
        rows: QuerySet[Backend] = super().get_queryset(request).annotate(serving=serving)
        return rows

    @admin.display(description="weights served", ordering="serving")
    def deployed(self, backend: Any) -> int:
        return int(backend.serving)

    @admin.display(description="health on this host")
    def health(self, backend: Any) -> str:
        """How the workers of this host find it, worst first; several hosts each have a view."""
        seen = _views_of(backend)
        if not seen:
            return "no worker uses it"
        busy = sum(view.inflight for _, view in seen)
        waiting = sum(view.waiting for _, view in seen)
        words = [_health_of(worker, view) for worker, view in seen if view.failures or view.ejected]
        return f"{'; '.join(words) or 'in'} ({busy} running, {waiting} waiting)"

    @admin.display(description="unreported tokens")
    def unreported(self, backend: Any) -> int:
        """Tokens that the backend generated and never reported, since the workers of this host started."""
        return sum(view.unreported_tokens for _, view in _views_of(backend))

    @admin.display(description="problems")
    def problems(self, backend: Any) -> str:
        """What keeps the backend from serving, as far as this process can tell."""
        if backend.pk is None or backend._state.adding:
            return "-"
        found = []
        if not backend.enabled:
            found.append("It is switched off.")
        if not backend.serving:
            found.append("No deployment is enabled.")
        if unread := variables.problem(backend.api_key_env):
            found.append(unread)
        return " ".join(found) or "none"


def _views_of(backend: Any) -> list[tuple[int, BackendView]]:
    """The backend as each worker of this host sees it, by the worker's number."""
    return [
        (worker, view)
        for worker, all_views in views.read(VIEW, list[BackendView])
        for view in all_views
        if view.id == str(backend.pk)
    ]


def _health_of(worker: int, view: BackendView) -> str:
    failed = f"worker {worker}: {view.failures} failures in a row"
    if not view.ejected:
        return failed
    left = f"for {view.seconds_left:.0f} s more" if view.seconds_left else "until it is tried again"
    return f"{failed}, left out {left}"
