"""The console's page on which people change their own password."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.console.base import ConsoleView


class PasswordView(ConsoleView):
    """Takes the old password and a new one. Every other session of the person ends."""

    section = "password"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("console/password.html", form=PasswordChangeForm(self.user))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = PasswordChangeForm(self.user, request.POST)
        if not form.is_valid():
            return self.page("console/password.html", form=form)
        update_session_auth_hash(request, form.save())
        messages.success(request, "Your password is changed. Other sessions were logged out.")
        return redirect("console-password")
