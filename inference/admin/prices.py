"""The admin's pages of prices: a new one is previewed before it is saved, an announced one withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from core import clock
from core.admin.columns import NOTHING
from core.clock import iso_milliseconds
from core.money import price_text
from inference.admin.lifecycle import ConfirmForm, LifecycleAdmin
from inference.admin.price_preview import preview
from inference.catalog import pricing
from inference.catalog.lifecycle import Status, status
from inference.catalog.pricing import PriceError, effective_moment
from inference.models import ModelEntry, Price
from usage.admin.sums_page import PERMISSION

if TYPE_CHECKING:  # generic in the stubs only
    PriceModelForm = forms.ModelForm[Price]
    PriceTabularInline = admin.TabularInline[Price, ModelEntry]
else:
    PriceModelForm = forms.ModelForm
    PriceTabularInline = admin.TabularInline


class PriceForm(PriceModelForm):
    """A new price; an empty ``effective_from`` means now."""

    effective_from = forms.SplitDateTimeField(
        required=False,
        widget=admin.widgets.AdminSplitDateTime(),
        help_text="UTC; empty: now. Applies to requests from then on; rows already written keep "
        "their price.",
    )

    class Meta:
        model = Price
        fields = ("input_per_mtok", "output_per_mtok", "currency", "effective_from")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "currency" in self.fields:
            self.fields["currency"].initial = settings.SVC_DEFAULT_CURRENCY

    def clean_effective_from(self) -> Any:
        try:
            return effective_moment(self.cleaned_data["effective_from"])
        except PriceError as error:
            raise ValidationError(error.message) from None


class NewPriceForm(PriceForm):
    """A new price of ``instance.entry``; the latest one is filled in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        latest = Price.objects.standing().filter(entry=self.instance.entry)
        if (price := latest.order_by("-effective_from").first()) is not None:
            self.initial.update(
                input_per_mtok=price_text(price.input_per_mtok),
                output_per_mtok=price_text(price.output_per_mtok),
                currency=price.currency,
            )

    def clean_effective_from(self) -> datetime:
        entry = self.instance.entry
        moment = pricing.free_moment(entry, super().clean_effective_from())
        if Price.objects.filter(entry=entry, effective_from=moment).exists():
            raise ValidationError("There is already a price from this very moment.")
        return moment


class PriceInline(PriceTabularInline):
    """The prices of a model; a draft, which nobody calls, has a blank row to add one."""

    model = Price
    form = PriceForm
    extra = 1
    can_delete = False
    ordering = ("effective_from",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: ModelEntry | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else ("standing",)

    def has_add_permission(self, request: HttpRequest, obj: ModelEntry | None = None) -> bool:
        is_called = obj is not None and obj.published_at is not None
        return super().has_add_permission(request, obj) and not is_called

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="standing")
    def standing(self, price: Price) -> str:
        if price._state.adding:
            return NOTHING
        now = clock.now()
        withdrawn = getattr(price, "withdrawal", None)
        if withdrawn is not None:
            return f"withdrawn {iso_milliseconds(withdrawn.created_at)}"
        if price.effective_from <= now:
            held = pricing.price_in_force(price.entry, now)
            return "in force" if held == price else "ended"
        if not pricing.can_withdraw(price, now):
            return "announced"
        address = reverse(
            "admin:inference_modelentry_withdraw_price", args=[price.entry_id, price.pk]
        )
        return format_html('announced <a href="{}">Withdraw…</a>', address)


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """What the page of a transition says (``verb.html``)."""

    label: str
    explanation: str


class PricedAdmin(LifecycleAdmin):
    """Adds the pages of prices to that of a model."""

    def get_urls(self) -> list[URLPattern]:
        pages = (
            ("<path:object_id>/price/", self._new_price, "new_price"),
            ("<path:object_id>/price/<int:price_id>/withdraw/", self._withdraw, "withdraw_price"),
        )
        own = [
            path(route, self.admin_site.admin_view(view), name=f"inference_modelentry_{name}")
            for route, view, name in pages
        ]
        return own + super().get_urls()

    def buttons(self, request: HttpRequest, entry: ModelEntry) -> list[tuple[str, str]]:
        found = super().buttons(request, entry)
        if status(entry, clock.now()) in (Status.ACTIVE, Status.SUPERSEDED) and _may_price(request):
            found.append(
                ("New price…", reverse("admin:inference_modelentry_new_price", args=[entry.pk]))
            )
        return found

    def _priced(self, request: HttpRequest, object_id: str) -> ModelEntry:
        entry = self.get_object(request, unquote(object_id))
        if entry is None:
            raise Http404
        if not (self.has_view_permission(request, entry) and _may_price(request)):
            raise PermissionDenied
        if status(entry, clock.now()) is Status.RETIRED:
            raise PermissionDenied
        return entry

    def _new_price(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for a price, show what it changes, then save it."""
        entry = self._priced(request, object_id)
        form = NewPriceForm(request.POST or None, instance=Price(entry=entry))
        if "edit" in request.POST or not form.is_valid():
            return self._page(request, "price.html", entry, f"New price of {entry}", form=form)
        shown = preview(
            form.instance,
            is_now=not request.POST.get("effective_from_0"),
            sees_usage=request.user.has_perm(PERMISSION),
        )
        against = str(shown.before.pk) if shown.before else ""
        if "save" in request.POST and request.POST.get("against") == against:
            price = form.save()
            messages.success(
                request,
                f"The new price applies to requests from {iso_milliseconds(price.effective_from)}"
                " on; rows already written keep theirs.",
            )
            return HttpResponseRedirect(
                reverse("admin:inference_modelentry_change", args=[entry.pk])
            )
        context = {
            "form": form,
            "preview": shown,
            "against": against,
            "is_stale": "save" in request.POST,
        }
        return self._page(request, "price.html", entry, f"New price of {entry}", **context)

    def _withdraw(self, request: HttpRequest, object_id: str, price_id: int) -> HttpResponse:
        """Withdraw an announced price, after a confirmation."""
        entry = self._priced(request, object_id)
        price = get_object_or_404(Price, pk=price_id, entry=entry)
        form = ConfirmForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            try:
                pricing.withdraw(price)
            except PriceError as error:
                form.add_error(None, error.message)
            else:
                messages.success(request, f"The price of {price} was withdrawn.")
                return HttpResponseRedirect(
                    reverse("admin:inference_modelentry_change", args=[entry.pk])
                )
        words = _Confirmed(
            "Withdraw price",
            f"{price_text(price.input_per_mtok)} / {price_text(price.output_per_mtok)} "
            f"{price.currency} from {iso_milliseconds(price.effective_from)} will never be in force; "
            "the price before it holds on. Callers no longer see it announced.",
        )
        return self._page(
            request,
            "verb.html",
            entry,
            f"Withdraw an announced price of {entry}",
            form=form,
            verb=words,
        )

    def _page(
        self, request: HttpRequest, template: str, entry: ModelEntry, title: str, **context: Any
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/inference/modelentry/{template}",
            {
                **self.admin_site.each_context(request),
                "title": title,
                "opts": self.opts,
                "entry": entry,
                "media": self.media + context["form"].media,
                **context,
            },
        )


def _may_price(request: HttpRequest) -> bool:
    return request.user.has_perm("inference.add_price")
