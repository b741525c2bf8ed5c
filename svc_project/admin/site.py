"""The admin site: its own titles, searches without secrets, and passwords throttled like the console's."""

from __future__ import annotations

from functools import wraps
from typing import Any, Final

from django.apps import apps
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import path, reverse

from accounts.keys.keys import cut_secrets
from accounts.login.forms import (
    OperatorLoginForm,
    OwnPasswordForm,
    login_answer,
    throttled_answer,
)
from core.admin.columns import NOTHING
from svc_project.admin import customer, key_card, overview, roles, search, visits
from svc_project.admin.history import AuditHistory, OperationsPages
from svc_project.admin.menu import SECOND_LEVEL, menu

_SEARCH: Final = "_search"
"""The field that tells a search (``templates/admin/search_form.html``) from other forms."""


def _search_address(request: HttpRequest) -> str | None:
    """The address of the list that ``request`` searches, where that is not its own address.

    A search is sent by POST and redirected to a list by GET, so that an API key that somebody pastes
    is in no address, history or proxy's log: only its prefix is, which the lists know keys by.
    """
    if request.method == "POST" and _SEARCH not in request.POST:
        return None
    sent = request.POST if request.method == "POST" else request.GET
    query = QueryDict(mutable=True)
    for name, values in sent.lists():
        if name not in (_SEARCH, "csrfmiddlewaretoken"):
            query.setlist(name, [cut_secrets(value) for value in values])
    if sent is request.GET and dict(query.lists()) == dict(sent.lists()):
        return None
    return f"{request.path}?{query.urlencode()}"


class OwnPasswordView(PasswordChangeView):
    """Takes an operator's old password and a new one."""

    form_class = OwnPasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_invalid(self, form: PasswordChangeForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, OwnPasswordForm):
            throttled_answer(form, response)
        return response


class OperationsSite(AdminSite):
    site_header = "svc operations"
    site_title = "svc operations"
    index_title = "Operations at a glance"
    empty_value_display = NOTHING
    # The site's origin is an API without pages, so there is no site to view.
    site_url = None
    login_form = OperatorLoginForm
    # The menu is over each page.
    enable_nav_sidebar = False

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Register with the audit trail as the history of every object."""
        shown = admin_class or ModelAdmin
        audited = type(
            shown.__name__, (AuditHistory, OperationsPages, shown), {"__module__": shown.__module__}
        )
        super().register(model_or_iterable, audited, **options)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT002  # Django's
        """Send searches on to their lists, and answer 400 where a value cannot be sent to the database."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if (address := _search_address(request)) is not None:
                return HttpResponseRedirect(address)
            try:
                return inner(request, *args, **kwargs)
            except DataError as error:
                raise BadRequest("The address or the form holds what no row can hold.") from error

        return answer

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """The tables of one app, under its name alone."""
        title = {"title": apps.get_app_config(app_label).verbose_name}
        return super().app_index(request, app_label, {**title, **(extra_context or {})})

    def get_urls(self) -> list[Any]:
        """Add the pages that belong to no table."""
        pages = (
            ("find/", search.page, "find"),
            ("customer/<uuid:organization_id>/", customer.page, "customer"),
            ("customer/<uuid:organization_id>/console/", visits.begin, "open_console"),
            ("customer/<uuid:organization_id>/leave/", visits.end, "leave_console"),
            ("member/<int:membership_id>/role/", roles.change, "member_role"),
            ("key/<uuid:key_id>/", key_card.page, "key_card"),
        )
        own = [path(route, self.admin_view(page), name=name) for route, page, name in pages]
        return [*own, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "menu": menu(request)}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The tables by app; all of them only on the page of an app."""
        found: list[Any] = super().get_app_list(request, app_label)
        if app_label is not None:
            return found
        for app in found:
            app["models"] = [
                each for each in app["models"] if each["model"]._meta.label not in SECOND_LEVEL
            ]
        return [app for app in found if app["models"]]

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

    def password_change(  # type: ignore[override]  # the stubs forget the redirect
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Serve Django's page with the throttled form, for which Django has no attribute."""
        context = {**self.each_context(request), **(extra_context or {})}
        done = reverse("admin:password_change_done", current_app=self.name)
        view = OwnPasswordView.as_view(success_url=done, extra_context=context)
        answer = view(request)
        assert isinstance(answer, HttpResponse)  # noqa: S101  # the view returns one
        return answer
