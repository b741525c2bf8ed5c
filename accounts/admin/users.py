"""Admin pages for users and groups, on which an operator grants only permissions that he holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, BaseUserCreationForm
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_variables

from accounts.login import password_links
from accounts.login.forms import RULES
from accounts.models import Membership, Role, User
from core.admin.columns import titled

ADD_MEMBERSHIP = "accounts.add_membership"


def is_stronger(user: User, than: User) -> bool:
    """Whether ``user`` has admin permissions that ``than`` lacks, also where he is not active."""
    if than.is_superuser:
        return False
    return user.is_superuser or bool(_permissions(user) - _permissions(than))


def reads_more(user: User, than: User) -> bool:
    """Whether ``user`` is a member of an organization that ``than`` cannot read, or an owner, who reads
    content, of one that ``than`` does not own."""
    if than.is_superuser:
        return False
    owned = Membership.objects.filter(user=than, role=Role.OWNER).values("organization_id")
    owning = Membership.objects.filter(user=user, role=Role.OWNER)
    if owning.exclude(organization_id__in=owned).exists():
        return True
    if than.has_perm(ADD_MEMBERSHIP):
        return False
    own = Membership.objects.filter(user=than).values("organization_id")
    return Membership.objects.filter(user=user).exclude(organization_id__in=own).exists()


def _permissions(user: User) -> set[int]:
    """Return the ids of the permissions of ``user``; Django's look-up returns none if inactive."""
    held = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return set(held.values_list("pk", flat=True))


if TYPE_CHECKING:  # generic in the stubs only
    MembershipTabularInline = admin.TabularInline[Membership, Any]
    EmailCreationForm = BaseUserCreationForm[User]
    EmailUserAdmin = DjangoUserAdmin[User]
    PasswordOfUserForm = AdminPasswordChangeForm[User]
else:
    MembershipTabularInline = admin.TabularInline
    EmailCreationForm = BaseUserCreationForm
    EmailUserAdmin = DjangoUserAdmin
    PasswordOfUserForm = AdminPasswordChangeForm

PRIVILEGES = ("is_staff", "is_superuser", "groups", "user_permissions")
_LABELS = {"is_active": "Active", "is_superuser": "Superuser", "user_permissions": "Permissions"}
_HELP = {
    "is_active": "Without it the user cannot log in.",
    "is_staff": "May log in here, with the rights below.",
    "is_superuser": "Has every right.",
    "groups": "The user has all rights of the chosen groups.",
    "user_permissions": "Rights beside those of the groups.",
}


class MembershipInline(MembershipTabularInline):
    """Memberships are added and removed, each with a permission of its own.

    They are not edited: an operator who could move one to another organization could read that one.
    Superusers alone add owners, who read the content of failed requests. Roles are changed on the page of
    the customer.
    """

    model = Membership
    extra = 0
    autocomplete_fields = ("user", "organization")
    readonly_fields = ("created_at",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Everybody sees the roles; only superusers choose that of a membership that they add."""
        shown = super().get_readonly_fields(request, obj)
        return shown if _operator(request).is_superuser else (*shown, "role")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UserCreationForm(EmailCreationForm):
    """Email and password; the model folds the address to lower case."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].help_text = RULES
        self.fields["password2"].help_text = ""

    class Meta:
        model = User
        fields = ("email",)


class UserPasswordForm(PasswordOfUserForm):
    """Sets another password of a user, or takes it away.

    Django's words are replaced where they speak of other ways to log in: there are only passwords here.
    """

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self.label_suffix = ""
        self.fields["password1"].help_text = RULES
        self.fields["password2"].help_text = ""
        if (choice := self.fields.get("usable_password")) is not None:
            choice.label = "Login with a password"
            choice.help_text = (
                "Disabled: the password is lost, and the user cannot log in before another is set."
            )


class UserAdmin(EmailUserAdmin):
    """Users are deactivated, never deleted: the admin's history names them.

    Only a superuser sets ``PRIVILEGES``. An operator cannot change a user who holds permissions that
    he lacks, nor give console access to a member of organizations that he cannot read.
    """

    add_form = UserCreationForm
    change_password_form = UserPasswordForm
    add_fieldsets = ((None, {"classes": ("wide",), "fields": ("email", "password1", "password2")}),)
    fieldsets = (
        (None, {"fields": ("email", "name", "shown_password")}),
        ("Rights", {"fields": ("is_active", *PRIVILEGES[:2])}),
        ("Groups and single permissions", {"fields": PRIVILEGES[2:], "classes": ("collapse",)}),
        ("Dates", {"fields": ("last_login", "created_at")}),
    )
    list_display = ("email", "is_staff", "active", "last_login", "created_at")
    list_filter = ("is_staff", ("is_active", titled(admin.BooleanFieldListFilter, "active")))
    search_fields = ("email",)
    ordering = ("email",)
    readonly_fields = ("shown_password", "last_login", "created_at")
    show_full_result_count = False
    inlines = (MembershipInline,)

    def get_form(
        self,
        request: HttpRequest,
        obj: User | None = None,
        change: bool = False,  # noqa: FBT002  # Django's
        **kwargs: Any,
    ) -> Any:
        own = {"labels": _LABELS, "help_texts": _HELP, "change": change, **kwargs}
        return super().get_form(request, obj, **own)

    @admin.display(description="active", boolean=True, ordering="is_active")
    def active(self, user: User) -> bool:
        return user.is_active

    @admin.display(description="password")
    def shown_password(self, user: User) -> SafeString:
        """Show whether a password is set: Django's own field shows the beginning of its hash."""
        state = "Set." if user.has_usable_password() else "None: the user cannot log in."
        return format_html(
            '{} <a href="../password/">Set another</a>, or '
            '<a href="../password-link/">make a one-time link</a> for the user.',
            state,
        )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        readonly = super().get_readonly_fields(request, obj)
        operator = _operator(request)
        if operator.is_superuser:
            return readonly
        if obj is not None and reads_more(obj, than=operator):
            readonly = (*readonly, *_that_open_the_console(obj))
        return (*readonly, *PRIVILEGES)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        return obj is None or not is_stronger(obj, than=_operator(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Refuse for members of further organizations, whose console the password would open."""
        user = self.get_object(request, unquote(id))
        if user is not None and reads_more(user, than=_operator(request)):
            raise PermissionDenied
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        return answer

    def get_urls(self) -> list[Any]:
        link = path(
            "<id>/password-link/",
            self.admin_site.admin_view(self.password_link),
            name="accounts_user_password_link",
        )
        return [link, *super().get_urls()]

    @method_decorator(sensitive_variables("link"))
    def password_link(self, request: HttpRequest, id: str) -> HttpResponse:
        """Show a new one-time link with which the user sets a password; once, in this response.

        Needs the same rights as setting the password.
        """
        user = self.get_object(request, unquote(id))
        if user is None:
            raise Http404
        operator = _operator(request)
        if not self.has_change_permission(request, user) or reads_more(user, than=operator):
            raise PermissionDenied
        link = until = None
        if request.method == "POST" and user.is_active:
            link, until = password_links.give(user, request)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"One-time link for {user.email}",
            "person": user,
            "link": link,
            "until": until,
            "hours": settings.PASSWORD_RESET_TIMEOUT // 3600,
        }
        template = "admin/accounts/user/password_link.html"
        return TemplateResponse(request, template, context, headers={"Cache-Control": "no-store"})


class GroupAdmin(DjangoGroupAdmin):
    """Only superusers edit groups: a member who edits his own group could grant himself permissions."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the groups alone, not each of their permissions."""
        found: Any
        found, *rest = super().get_deleted_objects(objs, request)
        return [each for each in found if not isinstance(each, list)], *rest

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _operator(request).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _operator(request).is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _operator(request).is_superuser


def _that_open_the_console(user: User) -> tuple[str, ...]:
    """The fields of a member that are as good as his password.

    A link for a new password is mailed to his address; a member who is switched on again reads his
    organizations. Switching him off protects them, and stays allowed.
    """
    return ("email",) if user.is_active else ("email", "is_active")


def _operator(request: HttpRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied
    return user
