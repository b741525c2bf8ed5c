"""The admin site: its own words, and a login that is throttled like the console's."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse

from accounts.login import OperatorLoginForm, login_answer


class OperationsSite(AdminSite):
    site_header = "svc operations"
    site_title = "svc operations"
    index_title = "Catalog, keys, limits and the ledger"
    # The admin shares its origin with an API, which has no page to view.
    site_url = None
    login_form = OperatorLoginForm

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Answers 400 where a value of the request cannot be asked of the database, such as a NUL."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                return inner(request, *args, **kwargs)
            except DataError as error:
                raise BadRequest("The address or the form holds what no row can hold.") from error

        return answer

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer = login_answer(request, super().login(request, extra_context))
        assert isinstance(answer, HttpResponse)  # noqa: S101  # what the base returns
        return answer
