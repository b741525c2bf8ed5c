"""The console's page of an organization: its members, and what its owners decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse

from accounts import members
from accounts.console.addresses import redirect
from accounts.console.base import ConsoleView
from accounts.keys import visits
from accounts.models import Role

_MOST_MEMBERS: Final = 200
_SAID: Final[Mapping[Role, str]] = {Role.OWNER: "an owner", Role.MEMBER: "a member"}


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
        rows = self.organization.memberships.select_related("user").order_by("user__email")
        is_visit = visits.visit_of(self.request) is not None
        return self.page(
            "console/organization.html",
            status,
            form=form,
            is_owner=self.is_owner,
            has_owner=members.has_owner(self.organization),
            shows_members=not is_visit or self.user.has_perm("accounts.view_membership"),
            members=rows[:_MOST_MEMBERS],
            more=max(0, rows.count() - _MOST_MEMBERS),
            most_hours=_most_hours(),
        )


class MemberView(ConsoleView):
    """Gives a member a role, by POST; for owners."""

    section = "organization"
    http_method_names: list[str] = ["post"]  # noqa: RUF012  # as Django declares it

    def post(self, request: HttpRequest, member: int) -> HttpResponse:
        row = self.organization.memberships.filter(pk=member).first()
        if row is None or not self.is_owner:
            raise Http404
        role = members.chosen_role(request.POST.get("role"))
        try:
            members.set_role(row, role)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            messages.success(request, f"{row.user} is {_SAID[role]} of {self.organization.name}.")
        return redirect("console-organization")
