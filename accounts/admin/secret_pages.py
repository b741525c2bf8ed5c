"""Pages about keys: their secrets, shown once, and the question before they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from core.admin.restrictions import SecretColumnsAdmin


class SecretPagesAdmin(SecretColumnsAdmin):
    """Keys are revoked, never deleted: the ledger or the audit log names them."""

    change_form_template = "admin/accounts/apikey/change_form.html"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def offered(self, extra: dict[str, Any] | None, verbs: Sequence[tuple[str, str]]) -> Any:
        """The context of a key's page, which has a button for each action and its label."""
        return {**(extra or {}), "verbs": verbs, "checkbox_name": ACTION_CHECKBOX_NAME}

    def secrets_page(
        self, request: HttpRequest, columns: Sequence[str], made: Sequence[Sequence[str]]
    ) -> HttpResponse:
        """Show new secrets in the response itself: a redirect would have to store them.

        Each of ``made`` has a cell for each of ``columns``, then the secret.
        """
        rows = [(cells[:-1], cells[-1]) for cells in made]
        return self._page(
            request, "new_secrets", "The secret, shown once", columns=columns, rows=rows
        )

    def confirmation_page(
        self,
        request: HttpRequest,
        chosen: Sequence[tuple[Model, str]],
        action: str,
        form: forms.Form | None = None,
    ) -> HttpResponse:
        """Ask whether to do ``action`` with the ``chosen`` keys, each given with its words."""
        return self._page(
            request,
            "confirm",
            f"{action.capitalize()} keys",
            chosen=chosen,
            action=action,
            form=form,
            checkbox_name=ACTION_CHECKBOX_NAME,
        )

    def _page(self, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/accounts/apikey/{name}.html",
            {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context},
            headers={"Cache-Control": "no-store"},
        )
