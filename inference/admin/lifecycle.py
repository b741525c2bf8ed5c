"""The lifecycle in the admin: each transition has a button and a page; no field is edited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminSplitDateTime, AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from core import clock
from inference.admin import facts
from inference.catalog import lifecycle
from inference.catalog.lifecycle import LifecycleError, Status, status
from inference.models import ModelEntry

if TYPE_CHECKING:  # generic in the stubs only
    EntryAdmin = admin.ModelAdmin[ModelEntry]
else:
    EntryAdmin = admin.ModelAdmin


class ConfirmForm(forms.Form):
    """A form without fields: submitting it confirms the transition."""


class ShutdownForm(forms.Form):
    shutdown_at = forms.SplitDateTimeField(
        label="Shutdown",
        required=False,
        widget=AdminSplitDateTime(),
        help_text="UTC. From this moment on the identifier answers model_retired. "
        "Empty: no date yet.",
    )


class SupersedeForm(ShutdownForm):
    superseded_by = forms.ModelChoiceField(
        label="Successor",
        queryset=ModelEntry.objects.filter(published_at__isnull=False),
        widget=AutocompleteSelect(
            ModelEntry._meta.get_field("superseded_by"),
            admin.site,
        ),
        help_text="The published model that callers are told to move to.",
    )
    field_order = ("superseded_by", "shutdown_at")


@dataclass(frozen=True, slots=True)
class Verb:
    """A transition of the lifecycle, with its button and page."""

    name: str
    label: str
    explanation: str
    form: type[forms.Form]
    offered: frozenset[Status]
    act: Callable[[ModelEntry, dict[str, Any]], None]
    done: str
    """The past participle, for the message and the history."""

    @property
    def title(self) -> str:
        """The label without the ellipsis, which says that a form follows."""
        return self.label.rstrip("…")


VERBS = (
    Verb(
        name="publish",
        label="Publish",
        explanation="Every caller sees and can use the model at once. It then cannot be renamed, "
        "deleted, or given other weights.",
        form=ConfirmForm,
        offered=frozenset({Status.DRAFT}),
        act=lambda entry, _: lifecycle.publish(entry),
        done="published",
    ),
    Verb(
        name="supersede",
        label="Supersede…",
        explanation="The model goes on serving, and the catalog names its successor and the day "
        "it stops.",
        form=SupersedeForm,
        offered=frozenset({Status.ACTIVE, Status.SUPERSEDED}),
        act=lambda entry, answers: lifecycle.supersede(
            entry, answers["superseded_by"], answers["shutdown_at"]
        ),
        done="superseded",
    ),
    Verb(
        name="move-shutdown",
        label="Move shutdown…",
        explanation="The date in the catalog is the migration notice: moving it earlier may "
        "surprise callers.",
        form=ShutdownForm,
        offered=frozenset({Status.SUPERSEDED}),
        act=lambda entry, answers: lifecycle.move_shutdown(entry, answers["shutdown_at"]),
        done="given another shutdown date",
    ),
    Verb(
        name="withdraw",
        label="Withdraw notice",
        explanation="The model is active again: no successor, no shutdown date.",
        form=ConfirmForm,
        offered=frozenset({Status.SUPERSEDED}),
        act=lambda entry, _: lifecycle.withdraw(entry),
        done="made active again",
    ),
)


class LifecycleAdmin(EntryAdmin):
    """Adds the pages of the transitions, and their buttons to the page of an entry."""

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path(
                f"<path:object_id>/{verb.name}/",
                self.admin_site.admin_view(self._page_of(verb)),
                name=f"inference_modelentry_{verb.name}",
            )
            for verb in VERBS
        ]
        return pages + super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        entry = self.get_object(request, unquote(object_id))
        buttons = [] if entry is None else self.buttons(request, entry)
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), "verbs": buttons}
        )

    def buttons(self, request: HttpRequest, entry: ModelEntry) -> list[tuple[str, str]]:
        """The labels and addresses of what the viewer may do with ``entry`` now."""
        if not self.has_change_permission(request, entry):
            return []
        standing = status(entry, clock.now())
        return [
            (verb.label, reverse(f"admin:inference_modelentry_{verb.name}", args=[entry.pk]))
            for verb in VERBS
            if standing in verb.offered
        ]

    def _page_of(self, verb: Verb) -> Callable[[HttpRequest, str], HttpResponse]:
        def page(request: HttpRequest, object_id: str) -> HttpResponse:
            return self._verb_page(request, object_id, verb)

        return page

    def _verb_page(self, request: HttpRequest, object_id: str, verb: Verb) -> HttpResponse:
        entry = self.get_object(request, unquote(object_id))
        if entry is None:
            return HttpResponseRedirect(reverse("admin:inference_modelentry_changelist"))
        if not self.has_change_permission(request, entry):
            raise PermissionDenied
        if request.method == "POST":
            form = verb.form(request.POST)
            if form.is_valid() and self._moved(request, entry, verb, form):
                return HttpResponseRedirect(
                    reverse("admin:inference_modelentry_change", args=[entry.pk])
                )
        else:
            form = verb.form(
                initial={"superseded_by": entry.superseded_by_id, "shutdown_at": entry.shutdown_at}
            )
        context = {
            **self.admin_site.each_context(request),
            "title": f"{verb.title}: {entry}",
            "opts": self.opts,
            "entry": entry,
            "verb": verb,
            "form": form,
            "lacks": facts.to_publish(entry) if verb.name == "publish" else "",
            "media": self.media + form.media,
        }
        return TemplateResponse(request, "admin/inference/modelentry/verb.html", context)

    def _moved(self, request: HttpRequest, entry: ModelEntry, verb: Verb, form: forms.Form) -> bool:
        try:
            verb.act(entry, form.cleaned_data)
        except LifecycleError as error:
            form.add_error(error.field if error.field in form.fields else None, error.message)
            return False
        messages.success(request, f"The model {entry} was {verb.done}.")
        return True
