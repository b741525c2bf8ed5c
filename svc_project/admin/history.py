"""What all tables of the admin have: the frame of their pages, and the audit trail as the only history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, Q
from django.forms.models import _get_foreign_key  # no public name; the admin's inlines use it too
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from accounts.models import AuditEntry
from svc_project.admin.menu import BESIDE, EMPTY

if TYPE_CHECKING:  # generic in the stubs only
    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyModelAdmin = admin.ModelAdmin

_PER_PAGE: Final = 50


class OperationsPages(AnyModelAdmin):
    """The pages of every table: their titles, the tables beside them, and forms without idle parts."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        own = {
            "title": capfirst(str(self.opts.verbose_name_plural)),
            "beside": list(self._beside(request)),
            "empty": EMPTY.get(self.opts.label, "Nothing is here yet."),
        }
        return super().changelist_view(request, {**own, **(extra_context or {})})

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        own: dict[str, Any] = {"show_save_and_add_another": False}
        if object_id is not None:
            own["title"] = capfirst(str(self.opts.verbose_name))
        extra = {**own, **(extra_context or {})}
        return super().changeform_view(request, object_id, form_url, extra)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Without a field, an empty one too: Django answers 500 to ``?_to_field=``."""
        return super().get_object(request, object_id, from_field or None)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Leave out the colon behind each label."""
        forms = [
            context["adminform"].form,
            *(form for inline in context["inline_admin_formsets"] for form in inline.formset),
        ]
        for form in forms:
            form.label_suffix = ""
        return super().render_change_form(request, context, *args, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out what a row that is not there yet cannot show."""
        found = super().get_fieldsets(request, obj)
        if obj is not None:
            return found
        idle = frozenset(self.get_readonly_fields(request, obj))
        kept = (
            (title, {**options, "fields": [name for name in options["fields"] if name not in idle]})
            for title, options in found
        )
        return [(title, options) for title, options in kept if options["fields"]]

    def _beside(self, request: HttpRequest) -> Iterator[tuple[str, str]]:
        """The tables that are not on the home and belong to this one: names and addresses."""
        for label in BESIDE.get(self.opts.label, ()):
            model = apps.get_model(label)
            if self.admin_site.get_model_admin(model).has_view_or_change_permission(request):
                page = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
                yield capfirst(str(model._meta.verbose_name_plural)), reverse(page)


class AuditHistory(AnyModelAdmin):
    """Shows the audit entries of an object and of the rows on its page, not Django's ``LogEntry`` rows.

    The latter are not written: the audit trail (``accounts.audit.trail``) records the same acts, and those
    of the console and of commands.
    """

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> None: ...  # type: ignore[override]  # Django returns its row

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> None: ...  # type: ignore[override]

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None: ...  # type: ignore[override]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """``object_id`` is quoted, as in every address of the admin."""
        subject = self.get_object(request, unquote(object_id))
        if subject is None:
            raise Http404
        if not self.has_view_or_change_permission(request, subject):
            raise PermissionDenied
        entries = AuditEntry.objects.filter(self._entries_of(request, subject))
        context = {
            **self.admin_site.each_context(request),
            "title": f"History of {subject}",
            "opts": self.opts,
            "object": subject,
            "kind": _kind(self.model),
            "entries": Paginator(entries, _PER_PAGE).get_page(request.GET.get("p")),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/object_history.html", context)

    def _entries_of(self, request: HttpRequest, subject: Model) -> Q:
        """The entries of ``subject``, and of the rows on its page that the operator may view.

        A row that was deleted is found by the entry of its creation, which names ``subject``.
        """
        found = Q(kind=_kind(self.model), subject_id=str(subject.pk))
        for inline in self.get_inline_instances(request, subject):
            kind = _kind(inline.model)
            to_subject = _get_foreign_key(self.model, inline.model, inline.fk_name)
            rows = inline.model._base_manager.filter(**{to_subject.name: subject})
            made = AuditEntry.objects.filter(
                kind=kind, **{f"changes__{to_subject.name}__1__endswith": f"({subject.pk})"}
            )
            found |= Q(
                kind=kind, subject_id__in=[str(pk) for pk in rows.values_list("pk", flat=True)]
            )
            found |= Q(kind=kind, subject_id__in=made.values("subject_id"))
        return found


def _kind(model: type[Model]) -> str:
    """What audit entries call a row of ``model``."""
    return str(model._meta.verbose_name)
