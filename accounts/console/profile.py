"""The console's page about the person who is logged in: name, organizations, time zone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.console import display_zone
from accounts.console.base import ConsoleView
from accounts.models import User

if TYPE_CHECKING:  # generic in the stubs only
    UserForm = forms.ModelForm[User]
else:
    UserForm = forms.ModelForm


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
