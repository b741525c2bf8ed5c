"""The operators' pages for organizations, users and API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.audit_admin import AuditEntryAdmin
from accounts.key_admin import ApiKeyAdmin
from accounts.models import ApiKey, AuditEntry, Organization, User
from accounts.user_admin import GroupAdmin, MembershipInline, UserAdmin
from svc_project.lib import clock

if TYPE_CHECKING:  # generic in the stubs only
    OrganizationModelAdmin = admin.ModelAdmin[Organization]
else:
    OrganizationModelAdmin = admin.ModelAdmin


@admin.register(Organization)
class OrganizationAdmin(OrganizationModelAdmin):
    """Organizations are disabled, never deleted: the ledger names them."""

    list_display = (
        "name",
        "plan",
        "enabled",
        "requests_per_minute",
        "tokens_per_minute",
        "speech_requests_per_minute",
        "speech_characters_per_day",
        "created_at",
    )
    list_filter = ("plan", ("disabled_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "id")
    show_full_result_count = False
    readonly_fields = ("id", "disabled_at", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "plan", "id", "created_at", "disabled_at")}),
        ("Chat limits", {"fields": ("requests_per_minute", "tokens_per_minute")}),
        (
            "Speech limits",
            {"fields": ("speech_requests_per_minute", "speech_characters_per_day")},
        ),
        ("Content", {"fields": ("captures_allowed",)}),
    )
    inlines = (MembershipInline,)
    actions = ("disable", "enable")

    @admin.display(boolean=True, description="enabled")
    def enabled(self, organization: Organization) -> bool:
        return organization.disabled_at is None or organization.disabled_at > clock.now()

    @admin.action(description="Disable selected organizations", permissions=["change"])
    def disable(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        changed = self._set_disabled(request, chosen.filter(disabled_at=None), disabled=True)
        self.message_user(
            request, f"{changed} organizations disabled; their keys are refused.", messages.SUCCESS
        )

    @admin.action(description="Enable selected organizations", permissions=["change"])
    def enable(self, request: HttpRequest, chosen: QuerySet[Organization]) -> None:
        changed = self._set_disabled(request, chosen.exclude(disabled_at=None), disabled=False)
        self.message_user(request, f"{changed} organizations enabled.", messages.SUCCESS)

    def _set_disabled(
        self, request: HttpRequest, chosen: QuerySet[Organization], *, disabled: bool
    ) -> int:
        with transaction.atomic():
            organizations = list(chosen.select_for_update())
            for organization in organizations:
                organization.disabled_at = clock.now() if disabled else None
                organization.save(update_fields=["disabled_at"])
                self.log_change(request, organization, "Disabled." if disabled else "Enabled.")
        return len(organizations)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.register(User, UserAdmin)
admin.site.unregister(Group)
admin.site.register(Group, GroupAdmin)
admin.site.register(ApiKey, ApiKeyAdmin)
admin.site.register(AuditEntry, AuditEntryAdmin)
