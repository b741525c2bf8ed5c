"""The throttled forms of console and admin that take a password that is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse

from accounts.login.throttle import TooManyLogins, admit, admit_change, remember_device
from accounts.models import User

RULES: Final = "At least 10 characters, unlike the email address, and no common password."
"""What ``AUTH_PASSWORD_VALIDATORS`` ask of a password, in one line."""

if TYPE_CHECKING:  # a mixin that knows which methods it stands before
    _BeforeForm = AuthenticationForm
else:
    _BeforeForm = object


class Throttled(_BeforeForm):
    """Charges a try before the password is checked, and refunds it when the password was right."""

    wait_seconds: int | None = None
    """Seconds until the next try is allowed, when the throttle refused the form."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Put the cursor into the password where the email address is kept from the last try."""
        super().__init__(*args, **kwargs)
        if self.is_bound and self.data.get("username"):
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True

    def clean(self) -> dict[str, Any]:
        email, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not email or not password or self.request is None:
            return super().clean()
        try:
            attempt = admit(self.request, email)
        except TooManyLogins as error:
            self.wait_seconds = error.seconds
            raise ValidationError(str(error), code="throttled") from None
        cleaned = super().clean()
        attempt.succeeded()
        return cleaned


class LoginForm(Throttled, AuthenticationForm):
    """The console's login: email and password; one message for every reason to refuse."""

    username = forms.EmailField(
        label="Email",
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    error_messages: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # an instance variable in the stubs only
        **AuthenticationForm.error_messages,
        "invalid_login": "Wrong email address or password.",
    }


class OperatorLoginForm(Throttled, AdminAuthenticationForm):
    """The admin's login, for operators only."""


class OwnPasswordForm(PasswordChangeForm):
    """The old password and a new one.

    A try is charged and refunded as a login of the account is: whoever has taken over a session could
    otherwise guess the password without an end.
    """

    required_css_class = "required"  # the admin's own

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.label_suffix = ""
        self.fields["new_password1"].help_text = RULES
        self.fields["new_password2"].help_text = ""
        self.request = request
        self.wait_seconds: int | None = None

    def clean_old_password(self) -> str:
        try:
            attempt = admit_change(self.request, self.user.email)
        except TooManyLogins as error:
            self.wait_seconds = error.seconds
            raise ValidationError(str(error), code="throttled") from None
        password: str = super().clean_old_password()
        attempt.succeeded()
        return password


def throttled_answer(form: Throttled | OwnPasswordForm, response: HttpResponseBase) -> None:
    """Make ``response`` a 429 when the throttle refused ``form``."""
    if form.wait_seconds is not None:
        response.status_code = 429
        response["Retry-After"] = str(form.wait_seconds)


def login_answer(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return 429 when throttled; set the device cookie after a successful login."""
    if isinstance(response, TemplateResponse):
        form = (response.context_data or {}).get("form")
        if isinstance(form, Throttled):
            throttled_answer(form, response)
    elif request.method == "POST" and isinstance(request.user, User):
        remember_device(response, request.user.email)
    return response
