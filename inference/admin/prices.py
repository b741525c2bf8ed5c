"""The admin's pages of prices: a new one is previewed before it is saved, an announced one withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

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
from core.clock import iso_milliseconds
from core.money import price_text, sum_costs, token_cost
from inference.admin.lifecycle import ConfirmForm, LifecycleAdmin
from inference.catalog import pricing
from inference.catalog.lifecycle import Status, status
from inference.catalog.pricing import PriceError, effective_moment
from inference.models import ModelEntry, Price
from usage.admin.sums_page import PERMISSION, Names
from usage.queries.everyone import By, sums
from usage.queries.periods import Period

RECKONED: Final = timedelta(days=30)
_MOST_SHOWN: Final = 50
_BY: Final = (By.ORGANIZATION,)

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
    readonly_fields = ("standing",)

    def has_add_permission(self, request: HttpRequest, obj: ModelEntry | None = None) -> bool:
        is_called = obj is not None and obj.published_at is not None
        return super().has_add_permission(request, obj) and not is_called

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="standing")
    def standing(self, price: Price) -> str:
        if price._state.adding:
            return "-"
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
class Rate:
    """One of the two prices, before and after."""

    label: str
    before: Decimal | None
    after: Decimal

    @property
    def texts(self) -> tuple[str, str]:
        return "" if self.before is None else price_text(self.before), price_text(self.after)

    @property
    def change(self) -> str:
        """Such as ``+20.7 %``; empty where there is nothing to compare with."""
        if not self.before or self.before == self.after:
            return ""
        return f"{100 * (self.after - self.before) / self.before:+.1f} %".replace(".0 %", " %")


@dataclass(frozen=True, slots=True)
class Customer:
    """What the tokens of an organization cost in ``RECKONED`` at both prices."""

    name: str
    address: str
    now: Decimal
    then: Decimal

    @property
    def difference(self) -> Decimal:
        return self.then - self.now

    @property
    def sign(self) -> str:
        return "+" if self.difference > 0 else "\N{MINUS SIGN}" if self.difference else ""

    @property
    def size(self) -> Decimal:
        return abs(self.difference)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a price that is not saved yet changes, and for whom."""

    price: Price
    before: Price | None
    """The price that it replaces."""
    after: Price | None
    """The announced one that replaces it."""
    is_now: bool
    customers: list[Customer] | None
    """Those whose costs change most first; None for those who may not see usage."""
    days: int = RECKONED.days

    @property
    def rates(self) -> Iterator[Rate]:
        is_same = self.before is not None and self.before.currency == self.price.currency
        for label, column in (("Input", "input_per_mtok"), ("Output", "output_per_mtok")):
            before = getattr(self.before, column) if is_same else None
            yield Rate(label, before, getattr(self.price, column))

    @property
    def other_currency(self) -> str:
        """The currency that the price replaces; empty where it stays."""
        if self.before is None or self.before.currency == self.price.currency:
            return ""
        return self.before.currency

    @property
    def shown(self) -> list[Customer]:
        return (self.customers or [])[:_MOST_SHOWN]

    @property
    def left_out(self) -> int:
        return len(self.customers or []) - len(self.shown)

    @property
    def whole(self) -> Customer:
        found = self.customers or []
        return Customer(
            "All", "", sum_costs(each.now for each in found), sum_costs(each.then for each in found)
        )


def preview(price: Price, *, is_now: bool, sees_usage: bool) -> Preview:
    """Compare an unsaved ``price`` with the one that it replaces. Raises ``django.db.Error``."""
    before = pricing.price_in_force(price.entry, price.effective_from)
    later = Price.objects.standing().filter(
        entry=price.entry, effective_from__gt=price.effective_from
    )
    return Preview(
        price,
        before,
        later.order_by("effective_from").first(),
        is_now,
        _customers(price, before) if sees_usage and before is not None else None,
    )


def _customers(price: Price, before: Price) -> list[Customer]:
    """From the roll-ups: their tokens at both prices, so that only the price makes the difference."""
    now = clock.now()
    period = Period(clock.hour_of(now - RECKONED), clock.hour_of(now) + timedelta(hours=1))
    entries = sums(period, _BY, model_id=str(price.entry_id))
    tokens: dict[str, tuple[int, int]] = {}
    for each in entries:
        read, written = tokens.get(each.key[0], (0, 0))
        tokens[each.key[0]] = read + each.input_tokens, written + each.output_tokens
    names = Names(_BY, entries)
    found = [
        Customer(
            *names.of(By.ORGANIZATION, organization_id),
            *(
                sum_costs(
                    (
                        token_cost(read, each.input_per_mtok),
                        token_cost(written, each.output_per_mtok),
                    )
                )
                for each in (before, price)
            ),
        )
        for organization_id, (read, written) in tokens.items()
    ]
    return sorted(found, key=lambda each: (-each.size, each.name))


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
