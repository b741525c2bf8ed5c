"""Admin pages for users and groups, on which an operator grants only permissions that he holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import BaseUserCreationForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts import rights
from accounts.models import Membership, User

if TYPE_CHECKING:  # generic in the stubs only
    MembershipTabularInline = admin.TabularInline[Membership, Any]
    EmailCreationForm = BaseUserCreationForm[User]
    EmailUserAdmin = DjangoUserAdmin[User]
else:
    MembershipTabularInline = admin.TabularInline
    EmailCreationForm = BaseUserCreationForm
    EmailUserAdmin = DjangoUserAdmin

PRIVILEGES = ("is_staff", "is_superuser", "groups", "user_permissions")


class MembershipInline(MembershipTabularInline):
    """Memberships are added and removed, each with a permission of its own.

    They are not edited: whoever could move one to another organization could read that one.
    """

    model = Membership
    extra = 0
    autocomplete_fields = ("user", "organization")
    readonly_fields = ("created_at",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UserCreationForm(EmailCreationForm):
    """Email and password; the model folds the address to lower case."""

    class Meta:
        model = User
        fields = ("email",)


class UserAdmin(EmailUserAdmin):
    """Users are deactivated, never deleted: the admin's history names them.

    Only a superuser sets ``PRIVILEGES``. An operator cannot change a user who holds permissions that he lacks.
    """

    add_form = UserCreationForm
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "password1", "password2")}),)
    fieldsets = (
        (None, {"fields": ("email", "shown_password")}),
        ("Permissions", {"fields": ("is_active", *PRIVILEGES)}),
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

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        told = super().get_readonly_fields(request, obj)
        return told if _operator(request).is_superuser else (*told, *PRIVILEGES)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        return obj is None or not rights.is_stronger(obj, than=_operator(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """A member's password opens the console of his organizations too."""
        user = self.get_object(request, unquote(id))
        if user is not None and rights.reads_more(user, than=_operator(request)):
            raise PermissionDenied
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        return answer


class GroupAdmin(DjangoGroupAdmin):
    """Only superusers edit groups: a member who edits his own group could grant himself permissions."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _operator(request).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _operator(request).is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _operator(request).is_superuser


def _operator(request: HttpRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied
    return user
