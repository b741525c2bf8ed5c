"""The operators' pages for organizations, users and API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.admin_keys import AdminKeyAdmin
from accounts.admin.audit import AuditEntryAdmin
from accounts.admin.keys import ApiKeyAdmin
from accounts.admin.users import GroupAdmin, MembershipInline, UserAdmin
from accounts.models import AdminKey, ApiKey, AuditEntry, Organization, User
from accounts.organizations import set_disabled, with_working_keys
from core import clock
from core.admin.columns import Tone, badge, number_column

if TYPE_CHECKING:  # generic in the stubs only
    OrganizationModelAdmin = admin.ModelAdmin[Organization]
else:
    OrganizationModelAdmin = admin.ModelAdmin


_STATUS = {"Empty": "Enabled", "Not empty": "Disabled"}


class StandingFilter(admin.EmptyFieldListFilter):
    """Filters ``disabled_at`` by what it means."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "status"

    def choices(self, changelist: Any) -> Any:
        for each in super().choices(changelist):
            yield {**each, "display": _STATUS.get(str(each["display"]), each["display"])}


@admin.register(Organization)
class OrganizationAdmin(OrganizationModelAdmin):
    """Organizations are disabled, never deleted: the ledger names them."""

    list_display = (
        "name",
        "standing",
        "plan",
        "priority",
        "live_keys",
        "requests",
        "tokens",
        "speech_requests",
        "characters",
        "created_at",
    )
    list_filter = (("disabled_at", StandingFilter), "plan", "priority")
    search_fields = ("name", "id")
    show_full_result_count = False
    readonly_fields = ("id", "disabled_at", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "plan", "id", "created_at", "disabled_at")}),
        ("Chat limits", {"fields": ("requests_per_minute", "tokens_per_minute", "priority")}),
        (
            "Speech limits",
            {"fields": ("speech_requests_per_minute", "speech_characters_per_day")},
        ),
        ("Content", {"fields": ("captures_allowed",)}),
    )
    inlines = (MembershipInline,)
    actions = ("disable", "enable")

    requests = number_column("requests_per_minute", "requests a minute", empty="unlimited")
    tokens = number_column("tokens_per_minute", "tokens a minute", empty="unlimited")
    speech_requests = number_column(
        "speech_requests_per_minute", "speech a minute", empty="unlimited"
    )
    characters = number_column("speech_characters_per_day", "characters a day", empty="unlimited")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        return with_working_keys(super().get_queryset(request))

    @admin.display(description="status", ordering="disabled_at")
    def standing(self, organization: Organization) -> SafeString:
        if organization.disabled_at is None or organization.disabled_at > clock.now():
            return badge("enabled", Tone.GOOD)
        return badge("disabled", Tone.BAD)

    @admin.display(description="working keys", ordering="keys")
    def live_keys(self, organization: Any) -> SafeString:
        address = reverse("admin:accounts_apikey_changelist")
        number = organization.keys or 0
        return format_html(
            '<a href="{}?organization__id__exact={}">{}</a>', address, organization.pk, number
        )

    @admin.action(description="Disable selected organizations", permissions=["change"])
    def disable(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        changed = len(set_disabled(chosen, disabled=True))
        self.message_user(
            request, f"{changed} organizations disabled; their keys are refused.", messages.SUCCESS
        )

    @admin.action(description="Enable selected organizations", permissions=["change"])
    def enable(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        changed = len(set_disabled(chosen, disabled=False))
        self.message_user(request, f"{changed} organizations enabled.", messages.SUCCESS)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.register(User, UserAdmin)
admin.site.unregister(Group)
admin.site.register(Group, GroupAdmin)
admin.site.register(AdminKey, AdminKeyAdmin)
admin.site.register(ApiKey, ApiKeyAdmin)
admin.site.register(AuditEntry, AuditEntryAdmin)
