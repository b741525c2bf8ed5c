"""The console's pages for people who forgot their password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.generic import View

from accounts.audit import trail
from accounts.audit.trail import Origin
from accounts.login.password_links import reset_mails
from accounts.login.throttle import TooManyLogins, admit_reset
from accounts.models import User
from accounts.models.security import Source
from svc_project.lib.api.client_address import client_address

if TYPE_CHECKING:  # generic in the stubs only
    NewPasswordForm = SetPasswordForm[User]
else:
    NewPasswordForm = SetPasswordForm


class AddressForm(forms.Form):
    """The address to which a link is sent."""

    email = forms.EmailField(
        label="Email",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )


class ForgottenPasswordView(View):
    """Answers the same, in the same time, whether there is an account or not."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return _page(request, form=AddressForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = AddressForm(request.POST)
        if not settings.SVC_SENDS_MAIL or not form.is_valid():
            return _page(request, form=form)
        email = form.cleaned_data["email"]
        try:
            admit_reset(request, email)
        except TooManyLogins as error:
            form.add_error(None, str(error))
            response = _page(request, 429, form=form)
            response["Retry-After"] = str(error.seconds)
            return response
        reset_mails.ask(email, request)
        return _page(request, sent_to=email)


def _page(request: HttpRequest, status: int = 200, **context: Any) -> HttpResponse:
    shown = {
        "sends_mail": settings.SVC_SENDS_MAIL,
        "hours": settings.PASSWORD_RESET_TIMEOUT // 3600,
        **context,
    }
    return render(request, "console/password_forgotten.html", shown, status=status)


class SetPasswordView(auth_views.PasswordResetConfirmView):
    """Takes the new password of the person who holds the link. All sessions of the person end.

    Django's view keeps the token in the session and redirects, so that the address of the page, which
    the browser keeps, opens nothing.
    """

    template_name = "console/password_set.html"
    success_url = reverse_lazy("console-password-was-set")
    extra_context = {"hours": settings.PASSWORD_RESET_TIMEOUT // 3600}  # noqa: RUF012  # as Django declares it
    reset_url_token = "new"  # noqa: S105  # a part of the address

    def form_valid(self, form: NewPasswordForm) -> HttpResponse:
        # The request has no user, so the audit entry names the owner of the link.
        origin = Origin(str(form.user), Source.CONSOLE, client_address(self.request))
        with trail.acting(lambda: origin), trail.named("set a new password with a link"):
            return super().form_valid(form)
