"""The history of an object in the admin is its audit trail, and there is no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, Q
from django.forms.models import _get_foreign_key  # no public name; the admin's inlines use it too
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse

from accounts.models import AuditEntry

if TYPE_CHECKING:  # generic in the stubs only
    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyModelAdmin = admin.ModelAdmin

_PER_PAGE: Final = 50


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
