"""The operators' pages of admin keys. A secret is shown once, in the response that made it.

Whoever has an admin key can do all that the management API does, whatever the operator who made it may
do in the admin. So ``accounts.add_adminkey`` belongs to the few who may do all of that.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.secret_pages import SecretPagesAdmin
from accounts.keys import admin_keys, keys
from accounts.keys.forms import NewAdminKeyForm
from accounts.keys.keys import KeyStatus
from accounts.models import AdminKey


class AdminKeyAdmin(SecretPagesAdmin):
    secret_columns: ClassVar[frozenset[str]] = frozenset({"digest", "pepper"})

    list_display = ("shown_prefix", "label", "shown_status", "expires_at", "created_at")
    search_fields = ("prefix", "label")
    show_full_result_count = False
    actions = ("revoke",)
    shown = (
        "shown_prefix",
        "id",
        "label",
        "shown_status",
        "created_at",
        "expires_at",
        "revoked_at",
    )

    @admin.display(description="key", ordering="prefix")
    def shown_prefix(self, admin_key: AdminKey) -> str:
        return f"{admin_key.prefix}…"

    @admin.display(description="status")
    def shown_status(self, admin_key: AdminKey) -> str:
        return str(keys.status(admin_key).label)

    def get_form(
        self,
        request: HttpRequest,
        obj: AdminKey | None = None,
        change: bool = False,  # noqa: FBT002  # Django's
        **kwargs: Any,
    ) -> Any:
        own = {} if change else {"form": NewAdminKeyForm}
        return super().get_form(request, obj, change, **{**own, **kwargs})

    def get_fields(self, request: HttpRequest, obj: AdminKey | None = None) -> tuple[str, ...]:
        return ("label", "expires_at", "one_time") if obj is None else self.shown

    def get_readonly_fields(
        self, request: HttpRequest, obj: AdminKey | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else self.shown

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer to revoke a key that works; nothing else of it changes."""
        admin_key = self.get_object(request, unquote(object_id))
        works = admin_key is not None and _works(admin_key)
        may_revoke = works and self.has_change_permission(request, admin_key)
        context = self.offered(extra_context, [("revoke", "Revoke…")] if may_revoke else [])
        context |= {"show_save": False, "show_save_and_continue": False}
        return super().change_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: AdminKey, form: Any, change: bool) -> None:
        if not change:
            request.new_key = admin_keys.store_with_secret(obj)  # type: ignore[attr-defined]  # for response_add

    def response_add(
        self, request: HttpRequest, obj: AdminKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        secret: str = request.new_key.secret  # type: ignore[attr-defined]
        return self.secrets_page(request, ("Label",), [(obj.label, secret)])

    @admin.action(description="Revoke selected admin keys", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[AdminKey]) -> HttpResponse | None:
        if "confirmed" not in request.POST:
            return self.confirmation_page(request, [(key, str(key)) for key in chosen], "revoke")
        with transaction.atomic():
            revoked = list(chosen.filter(revoked_at=None))
            for admin_key in revoked:
                admin_keys.revoke(admin_key)
        self.message_user(request, f"{len(revoked)} admin keys revoked.", messages.SUCCESS)
        return None


def _works(admin_key: AdminKey) -> bool:
    return keys.status(admin_key) in (KeyStatus.ACTIVE, KeyStatus.EXPIRING)
