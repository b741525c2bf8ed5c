"""The admin site: its own words, and a login that is throttled like the console's."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse

from accounts.login import OperatorLoginForm, login_answer


class OperationsSite(AdminSite):
    site_header = "svc operations"
    site_title = "svc operations"
    index_title = "Catalog, keys, limits and the ledger"
    # The admin shares its origin with an API, which has no page to view.
    site_url = None
    login_form = OperatorLoginForm

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer = login_answer(request, super().login(request, extra_context))
        assert isinstance(answer, HttpResponse)  # noqa: S101  # what the base returns
        return answer
