"""The page that adds a model server: its address, what a probe finds there, prices, and all is published.

It loads a catalog file (``inference.probe.publishing``), so it makes and audits the rows that the forms
of the admin would. What was found travels in the page, signed for its operator: a second probe could
find something else than what is published.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from accounts.audit import trail
from core import clock
from core.admin.backends import TestedBackendAdmin
from core.catalog_tables import CatalogFileError
from inference.admin.server_forms import CurrencyForm, ModelForm, ServerForm
from inference.catalog.file import BackendTable
from inference.catalog.lifecycle import Status, status
from inference.catalog.load import load_catalog
from inference.catalog.stored import stored_backends, stored_models
from inference.models import Backend, ModelEntry
from inference.probe.findings import ServerFindings, fitting
from inference.probe.publishing import RIGHTS, Wanted, additions, backend_table, identifiers_of
from inference.probe.run import probe

CHECK_SECONDS: Final = 50.0
"""How long a check may take in all: proxies give up after a minute."""
_KEPT_SECONDS: Final = 3600


@dataclass(frozen=True)
class Checked:
    """A server that was probed, and what its operator said of it."""

    server: ServerFindings
    name: str
    api_key_env: str

    def signed(self, request: HttpRequest) -> str:
        """For a field of the page; only the same operator can send it back, for an hour."""
        return signing.dumps(msgspec.to_builtins(self), salt=_salt(request), compress=True)

    def backend(self) -> BackendTable:
        """The backend of the catalog at this address, or the one that would be made."""
        for table in stored_backends():
            if table.base_url.rstrip("/") == self.server.base_url:
                return table
        return backend_table(self.server, self.api_key_env, self.name)


def checked_of(request: HttpRequest) -> Checked | None:
    """What ``Checked.signed`` made, from the form that was sent; None when it is too old, or another's."""
    try:
        found = signing.loads(request.POST["found"], salt=_salt(request), max_age=_KEPT_SECONDS)
    except signing.BadSignature:
        return None
    return msgspec.convert(found, Checked)


def _salt(request: HttpRequest) -> str:
    return f"inference.admin.add_server {request.user.pk}"


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that prevents the publication, and where it is mended."""

    words: str
    address: str
    label: str


class AddServerAdmin(TestedBackendAdmin):
    """Adds the page to the admin of backends."""

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(self._add_server)
        return [
            path("add-server/", page, name="inference_backend_add_server"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        extra = {"may_add_server": request.user.has_perms(RIGHTS), **(extra_context or {})}
        return super().changelist_view(request, extra)

    def _add_server(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perms(RIGHTS):
            raise PermissionDenied
        if request.method == "POST" and "found" in request.POST:
            return self._publish(request)
        form = ServerForm(
            request.POST if request.method == "POST" else None, initial=_known(request)
        )
        if not form.is_valid():
            return self._server_page(request, form=form)
        checked = self._check(form)
        if not checked.server.working:
            return self._server_page(request, form=form, server=checked.server)
        forms_ = _forms(checked.server)
        currency = CurrencyForm(initial={"currency": settings.SVC_DEFAULT_CURRENCY})
        return self._found(request, checked, forms_, currency)

    @staticmethod
    def _check(form: ServerForm) -> Checked:
        given = form.cleaned_data
        asked = Backend(
            name=given["name"] or given["base_url"],
            base_url=given["base_url"],
            api_key_env=given["api_key_env"],
        )
        trail.record_values("tested", asked, "base_url", "api_key_env")
        server = asyncio.run(probe(form.target(), given["models"], seconds=CHECK_SECONDS))
        # A hosted API lists thousands of models, which the page would carry for nothing.
        return Checked(replace(server, listed=()), given["name"], given["api_key_env"])

    def _publish(self, request: HttpRequest) -> HttpResponse:
        checked = checked_of(request)
        if checked is None:
            messages.warning(request, "That check is more than an hour old: check again.")
            return HttpResponseRedirect(request.path)
        forms_, currency = _forms(checked.server, request.POST), CurrencyForm(request.POST)
        chosen = [form for form in forms_ if form.chosen]
        missing = list(_missing(checked, chosen, currency))
        if not missing:
            wanted = [form.wanted(currency.cleaned_data["currency"]) for form in chosen]
            try:
                load_catalog(additions(checked.backend(), wanted))
            except CatalogFileError as error:
                missing = [Missing(str(error), "#found", "Back to the models")]
            else:
                return self._published(request, checked, wanted)
        return self._found(request, checked, forms_, currency, missing)

    @staticmethod
    def _published(
        request: HttpRequest, checked: Checked, wanted: Sequence[Wanted]
    ) -> HttpResponse:
        names = ", ".join(each.identifier for each in wanted)
        backend = checked.backend().name
        messages.success(request, f"Published on {backend}: {names}. Callers can use it now.")
        if len(wanted) > 1:
            return HttpResponseRedirect(reverse("admin:inference_modelentry_changelist"))
        entry = ModelEntry.objects.get(identifier=wanted[0].identifier)
        return HttpResponseRedirect(reverse("admin:inference_modelentry_change", args=[entry.pk]))

    def _found(
        self,
        request: HttpRequest,
        checked: Checked,
        forms_: Sequence[ModelForm],
        currency: CurrencyForm,
        missing: Sequence[Missing] = (),
    ) -> HttpResponse:
        backend = checked.backend()
        found = fitting(checked.server)
        return self._server_page(
            request,
            server=checked.server,
            found=checked.signed(request),
            models=forms_,
            failed=[model for model in checked.server.models if not model.works],
            currency=currency,
            missing=missing,
            backend=backend,
            known=Backend.objects.filter(name=backend.name, base_url=backend.base_url).first(),
            fitting=[
                ("Running usage", found.running_usage),
                ("Output cap field", found.output_cap_field),
                ("Prefix cache", found.prefix_cache),
                ("Kept connections", found.keep_alive),
            ],
        )

    def _server_page(self, request: HttpRequest, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            "admin/inference/backend/add_server.html",
            {
                **self.admin_site.each_context(request),
                "title": "Add a server",
                "opts": self.opts,
                **context,
            },
        )


def _known(request: HttpRequest) -> dict[str, str]:
    """The address, key variable and name of the backend that ``?backend=`` names, to add its models."""
    try:
        row = Backend.objects.filter(pk=uuid.UUID(request.GET.get("backend", ""))).first()
    except ValueError:
        return {}
    if row is None:
        return {}
    return {"base_url": row.base_url, "api_key_env": row.api_key_env, "name": row.name}


def _forms(server: ServerFindings, data: Any = None) -> list[ModelForm]:
    """A form for each model that works: as it was found, or as it was sent."""
    stored = {table.id: table for table in stored_models()}
    identifiers = identifiers_of(model.name for model in server.working)
    made = []
    for number, model in enumerate(server.working):
        form = ModelForm(data, model, number, stored)
        form.initial = {
            "publish": True,
            "identifier": identifiers[model.name],
            "context_length": model.context_length.value,
        }
        made.append(form)
    return made


def _missing(
    checked: Checked, chosen: Sequence[ModelForm], currency: CurrencyForm
) -> Iterator[Missing]:
    """Everything that prevents the publication, in the order of the page."""
    if not chosen:
        yield Missing("No model is selected.", "#found", "Select one")
    backend = checked.backend()
    taken = Backend.objects.filter(name=backend.name).exclude(base_url=backend.base_url).first()
    if taken is not None:
        yield Missing(
            f"A backend at another address is called {backend.name}: check again with another name.",
            reverse("admin:inference_backend_change", args=[taken.pk]),
            "See it",
        )
    seen: set[str] = set()
    for form in chosen:
        form.full_clean()
        for field, words in form.missing():
            yield Missing(
                f"{form.findings.name}: {words}.", f"#{form[field].auto_id}", "Go to the field"
            )
        identifier = form.cleaned_data.get("identifier", "")
        if identifier in seen:
            yield Missing(
                f"{form.findings.name}: two models are called {identifier}.",
                f"#{form['identifier'].auto_id}",
                "Go to the field",
            )
        seen.add(identifier)
        yield from _retired(identifier)
    for message in currency.errors.get("currency", ()):
        yield Missing(str(message), "#id_currency", "Go to the field")


def _retired(identifier: str) -> Iterator[Missing]:
    entry = ModelEntry.objects.filter(identifier=identifier).first()
    if entry is not None and status(entry, clock.now()) is Status.RETIRED:
        yield Missing(
            f"{identifier} is retired, for ever: give another identifier.",
            reverse("admin:inference_modelentry_change", args=[entry.pk]),
            "See it",
        )
