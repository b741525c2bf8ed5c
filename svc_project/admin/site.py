"""The admin site: its own titles, and a login throttled like the console's."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from accounts.login.forms import OperatorLoginForm, login_answer
from svc_project.admin import overview


class OperationsSite(AdminSite):
    site_header = "svc operations"
    site_title = "svc operations"
    index_title = "Operations at a glance"
    # The site's origin is an API without pages, so there is no site to view.
    site_url = None
    login_form = OperatorLoginForm

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT002  # Django's
        """Answer 400 where a value of the request cannot be sent to the database, such as a NUL."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                return inner(request, *args, **kwargs)
            except DataError as error:
                raise BadRequest("The address or the form holds what no row can hold.") from error

        return answer

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the system at a glance above the list of tables."""
        found = overview.overview(request.user)
        return super().index(request, {"overview": found, **(extra_context or {})})

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer = login_answer(request, super().login(request, extra_context))
        assert isinstance(answer, HttpResponse)  # noqa: S101  # the base returns one
        return answer
