"""The frame of the console: login, logout, and the choice of organization."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth import views as auth_views
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.views.generic import View

from accounts.console import display_zone
from accounts.keys import visits
from accounts.keys.authentication import (
    SAFE_METHODS,
    SESSION_ORGANIZATION,
    picked_organization,
    shown_organizations,
)
from accounts.login.forms import LoginForm, login_answer
from accounts.models import Organization, User


class ConsoleView(View):
    """A page about one organization, for its members.

    Without a session it redirects to the login and back. ``Http404`` becomes a page of the console,
    the same for ids that never existed and for those of another organization.
    """

    section: ClassVar[str] = ""
    """Which entry of the navigation the page belongs to."""

    user: User
    organization: Organization
    organizations: list[Organization]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not isinstance(request.user, User):
            # A form cannot be sent again after the login, so it returns to pages only.
            path = request.get_full_path() if request.method == "GET" else None
            return redirect_to_login(path or resolve_url(settings.LOGIN_REDIRECT_URL))
        self.user = request.user
        self.organizations = shown_organizations(request, self.user)
        organization = picked_organization(request, self.organizations)
        if organization is None:
            return self.page("console/no_organization.html", status=403)
        self.organization = organization
        if visits.visit_of(request) is not None and request.method not in SAFE_METHODS:
            return self.page("console/read_only.html", status=403)
        with display_zone.showing(self.user.time_zone):
            try:
                return super().dispatch(request, *args, **kwargs)
            except Http404:
                return self.page("console/not_found.html", status=404)

    def page(self, template: str, status: int = 200, **context: Any) -> HttpResponse:
        """``template`` with the frame's own variables and ``context``."""
        frame = {
            "user": self.user,
            "organization": getattr(self, "organization", None),
            "organizations": self.organizations,
            "section": self.section,
            "visit": visits.visit_of(self.request),
        }
        return render(self.request, template, {**frame, **context}, status=status)


class LoginView(auth_views.LoginView):
    """The console's own login. ``next`` is followed within this host only (Django's check)."""

    template_name = "console/login.html"
    authentication_form = LoginForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return login_answer(request, super().dispatch(request, *args, **kwargs))

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect(settings.LOGIN_REDIRECT_URL)
        return super().get(request, *args, **kwargs)


class LogoutView(auth_views.LogoutView):
    """By POST only, so that no link or image of another site logs anybody out."""

    next_page = "console-login"


class OrganizationView(ConsoleView):
    """Picks the organization that this session shows."""

    http_method_names: list[str] = ["post"]  # noqa: RUF012  # as Django declares it

    def post(self, request: HttpRequest) -> HttpResponse:
        wanted = request.POST.get("organization_id")
        if wanted not in {str(organization.pk) for organization in self.organizations}:
            raise Http404
        request.session[SESSION_ORGANIZATION] = wanted
        return redirect(settings.LOGIN_REDIRECT_URL)


class NothingHere(ConsoleView):
    """The 404 of every other path under /console/."""

    def get(self, request: HttpRequest, path: str) -> HttpResponse:
        raise Http404

    post = get


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """``CSRF_FAILURE_VIEW``: the form is from before a login, or from another site."""
    return render(request, "console/stale_form.html", status=403)
