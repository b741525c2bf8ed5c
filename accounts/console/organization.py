"""The console's page of an organization: what its owners decide."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse

from accounts.console.addresses import redirect
from accounts.console.base import ConsoleView


def _most_hours() -> int:
    return int(settings.SVC_CAPTURE_HOURS)


class ContentForm(forms.Form):
    """How long the content of failed requests is kept, up to the retention of captures."""

    hours = forms.IntegerField(label="Keep it for how many hours", min_value=0)

    def clean_hours(self) -> int:
        hours: int = self.cleaned_data["hours"]
        if hours > _most_hours():
            raise forms.ValidationError(f"At most {_most_hours()} hours.")
        return hours


class OrganizationView(ConsoleView):
    """Shows the organization to its members; owners change it."""

    section = "organization"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._form_page(self._filled_in())

    def post(self, request: HttpRequest) -> HttpResponse:
        if not self.is_owner:
            return self._form_page(self._filled_in(), status=403)
        form = ContentForm(request.POST)
        if not form.is_valid():
            return self._form_page(form)
        self.organization.failed_content_hours = form.cleaned_data["hours"]
        self.organization.save(update_fields=["failed_content_hours"])
        messages.success(request, "Saved.")
        return redirect("console-organization")

    def _filled_in(self) -> ContentForm:
        return ContentForm(initial={"hours": self.organization.failed_content_hours})

    def _form_page(self, form: ContentForm, status: int = 200) -> HttpResponse:
        return self.page(
            "console/organization.html",
            status,
            form=form,
            is_owner=self.is_owner,
            most_hours=_most_hours(),
        )
