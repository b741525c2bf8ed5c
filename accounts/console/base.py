"""The frame of the console: login, logout, and the organization of a page."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth import views as auth_views
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.functional import cached_property
from django.views.generic import View

from accounts.console import addresses, display_zone
from accounts.keys import visits
from accounts.keys.authentication import (
    SAFE_METHODS,
    SESSION_ORGANIZATION,
    organization_of,
    shown_organizations,
)
from accounts.login.forms import LoginForm, login_answer
from accounts.models import Organization, Role, User


class ConsoleView(View):
    """A page about one organization, for its members.

    The address names the organization; one that names none leads to the same page of the organization
    that was shown last. Without a session it redirects to the login and back. ``Http404`` becomes a page
    of the console, the same for ids that never existed, for those of another organization, and for
    an organization that the person is no member of.
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
        last = organization_of(request, self.organizations)
        if last is None:
            return self.page("console/no_organization.html", status=403)
        name = kwargs.pop("organization", None)
        asked = last if name is None else addresses.named(name, self.organizations)
        self.organization = asked or last
        own = addresses.names_of(self.organizations)[self.organization]
        with display_zone.showing(self.user.time_zone), addresses.inside(own):
            if asked is None:
                return self._not_found()
            if visits.visit_of(request) is not None and request.method not in SAFE_METHODS:
                return self.page("console/read_only.html", status=403)
            if name is None and self._is_of_organization(request):
                return self._at_own_address(request, own)
            if asked is not last:
                organization_of(request, self.organizations, str(asked.pk))
                request.session[SESSION_ORGANIZATION] = str(asked.pk)
            try:
                return super().dispatch(request, *args, **kwargs)
            except Http404:
                return self._not_found()

    def _is_of_organization(self, request: HttpRequest) -> bool:
        """Whether an address without an organization should have one. A form is taken as it is sent."""
        match = request.resolver_match
        page = match.url_name if match is not None else None
        return request.method in ("GET", "HEAD") and addresses.is_of_organization(page)

    def _at_own_address(self, request: HttpRequest, name: str) -> HttpResponse:
        """Redirect to the same page of the organization that is called ``name`` in addresses."""
        root, whole = addresses.ROOT, request.get_full_path()
        return redirect(f"{root}{name}/{whole.removeprefix(root)}")

    def _not_found(self) -> HttpResponse:
        return self.page("console/not_found.html", status=404)

    @cached_property
    def is_owner(self) -> bool:
        """Whether the person is an owner of the organization."""
        own = self.user.memberships.filter(organization=self.organization)
        return own.filter(role=Role.OWNER).exists()

    def page(self, template: str, status: int = 200, **context: Any) -> HttpResponse:
        """``template`` with the frame's own variables and ``context``."""
        frame = {
            "user": self.user,
            "organization": getattr(self, "organization", None),
            "organizations": self.organizations,
            "switches": self._switches(),
            "section": self.section,
            "visit": visits.visit_of(self.request),
        }
        return render(self.request, template, {**frame, **context}, status=status)

    def _switches(self) -> list[tuple[Organization, str]]:
        """The person's organizations with the addresses of their consoles."""
        own = addresses.names_of(self.organizations)
        return [(each, f"{addresses.ROOT}{name}/") for each, name in own.items()]


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


class NothingHere(ConsoleView):
    """The 404 of every other path under /console/; ``/console/acme`` lacks only its slash."""

    def get(self, request: HttpRequest, path: str) -> HttpResponse:
        if addresses.named(path, self.organizations) is not None:
            return redirect(f"{addresses.ROOT}{path}/")
        raise Http404

    def post(self, request: HttpRequest, path: str) -> HttpResponse:
        raise Http404


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """``CSRF_FAILURE_VIEW``: the form is from before a login, or from another site."""
    return render(request, "console/stale_form.html", status=403)
