"""The operators' pages for organizations, users and API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.audit_admin import AuditEntryAdmin
from accounts.key_admin import ApiKeyAdmin
from accounts.models import ApiKey, AuditEntry, Membership, Organization, User
from svc_project.lib import clock

if TYPE_CHECKING:  # generic in the stubs only
    OrganizationModelAdmin = admin.ModelAdmin[Organization]
    MembershipTabularInline = admin.TabularInline[Membership, Any]
    EmailCreationForm = BaseUserCreationForm[User]
    EmailUserAdmin = DjangoUserAdmin[User]
else:
    OrganizationModelAdmin = admin.ModelAdmin
    MembershipTabularInline = admin.TabularInline
    EmailCreationForm = BaseUserCreationForm
    EmailUserAdmin = DjangoUserAdmin


class MembershipInline(MembershipTabularInline):
    model = Membership
    extra = 0
    autocomplete_fields = ("user", "organization")
    readonly_fields = ("created_at",)


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


class UserCreationForm(EmailCreationForm):
    """Email and password; the model folds the address to lower case."""

    class Meta:
        model = User
        fields = ("email",)


@admin.register(User)
class UserAdmin(EmailUserAdmin):
    """Users are deactivated, never deleted: the admin's history names them."""

    add_form = UserCreationForm
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "password1", "password2")}),)
    fieldsets = (
        (None, {"fields": ("email", "shown_password")}),
        (
            "Permissions",
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        ("Dates", {"fields": ("last_login", "created_at")}),
    )
    list_display = ("email", "is_staff", "is_active", "last_login", "created_at")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    ordering = ("email",)
    readonly_fields = ("shown_password", "last_login", "created_at")
    show_full_result_count = False
    inlines = (MembershipInline,)

    @admin.display(description="password")
    def shown_password(self, user: User) -> SafeString:
        """Whether there is one: Django's own field shows where its hash begins."""
        state = "Set." if user.has_usable_password() else "None: the user cannot log in."
        return format_html('{} <a href="../password/">Set another</a>', state)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.register(ApiKey, ApiKeyAdmin)
admin.site.register(AuditEntry, AuditEntryAdmin)
