"""The account pages of a person: profile, password, and a forgotten password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.generic import View

from accounts.audit import trail
from accounts.audit.trail import Origin
from accounts.console import display_zone
from accounts.console.base import ConsoleView
from accounts.login.forms import OwnPasswordForm, throttled_answer
from accounts.login.password_links import mailed_address, reset_mails, tokens
from accounts.login.throttle import TooManyLogins, admit_reset
from accounts.models import User
from accounts.models.security import Source
from core.api.client_address import client_address

if TYPE_CHECKING:  # generic in the stubs only
    UserForm = forms.ModelForm[User]
    NewPasswordForm = SetPasswordForm[User]
else:
    UserForm = forms.ModelForm
    NewPasswordForm = SetPasswordForm


class ProfileForm(UserForm):
    """What people change about themselves. The email address is their login, so operators change it."""

    time_zone = forms.ChoiceField(
        label="Time zone",
        help_text="For times in the console. Days stay UTC, and so do downloads and the API.",
    )

    class Meta:
        model = User
        fields = ("name", "time_zone")

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they are
        zone = self.fields["time_zone"]
        assert isinstance(zone, forms.ChoiceField)  # noqa: S101  # for the type checker
        zone.choices = [(name, name.replace("_", " ")) for name in display_zone.names()]
        self.fields["name"].widget.attrs["autocomplete"] = "name"


class ProfileView(ConsoleView):
    """Shows and changes the profile."""

    section = "profile"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("console/profile.html", form=ProfileForm(instance=self.user))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = ProfileForm(request.POST, instance=self.user)
        if not form.is_valid():
            return self.page("console/profile.html", form=form)
        form.save()
        messages.success(request, "Your profile is saved.")
        return redirect("console-profile")


class PasswordView(ConsoleView):
    """Takes the old password and a new one. Every other session of the person ends."""

    section = "password"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("console/password.html", form=OwnPasswordForm(request, self.user))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = OwnPasswordForm(request, self.user, request.POST)
        if not form.is_valid():
            response = self.page("console/password.html", form=form)
            throttled_answer(form, response)
            return response
        update_session_auth_hash(request, form.save())
        messages.success(request, "Your password is changed. Other sessions were logged out.")
        return redirect("console-password")


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
        address = mailed_address(request)
        if not settings.SVC_SENDS_MAIL or address is None or not form.is_valid():
            return _page(request, form=form)
        email = form.cleaned_data["email"]
        try:
            admit_reset(request, email)
        except TooManyLogins as error:
            form.add_error(None, str(error))
            response = _page(request, 429, form=form)
            response["Retry-After"] = str(error.seconds)
            return response
        reset_mails.ask(email, address)
        return _page(request, sent_to=email)


def _page(request: HttpRequest, status: int = 200, **context: Any) -> HttpResponse:
    shown = {
        "sends_mail": settings.SVC_SENDS_MAIL and mailed_address(request) is not None,
        "sends_mail_elsewhere": settings.SVC_SENDS_MAIL,
        "hours": settings.PASSWORD_RESET_TIMEOUT // 3600,
        **context,
    }
    return render(request, "console/password_forgotten.html", shown, status=status)


class SetPasswordView(auth_views.PasswordResetConfirmView):
    """Takes the new password of the person who holds the link. All sessions of the person end.

    Django's view keeps the token in the session and redirects, so that the address of the page, which
    the browser keeps, opens nothing.
    """

    token_generator = tokens
    template_name = "console/password_set.html"
    success_url = reverse_lazy("console-password-was-set")
    extra_context = {"hours": settings.PASSWORD_RESET_TIMEOUT // 3600}  # noqa: RUF012  # as Django declares it
    reset_url_token = "new"  # noqa: S105  # a part of the address

    def form_valid(self, form: NewPasswordForm) -> HttpResponse:
        # The request has no user, so the audit entry names the owner of the link.
        origin = Origin(str(form.user), Source.CONSOLE, client_address(self.request))
        with trail.acting(lambda: origin), trail.named("set a new password with a link"):
            return super().form_valid(form)
