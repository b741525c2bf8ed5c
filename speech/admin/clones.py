"""The operators' pages of clones and of their copies on speech backends."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from accounts.audit import trail
from core import clock
from core.admin.columns import Tone, badge
from core.admin.restrictions import SecretColumnsAdmin
from speech.errors import CloneNotFound
from speech.models import CloneAudio, CloneUpload, VoiceClone
from speech.voices.clones import rows as registry
from speech.voices.clones.outbox import outbox

OVERDUE_AFTER = timedelta(minutes=30)
"""Time since the clone's deletion; by then the deletion was retried several times."""


class CloneStateFilter(admin.SimpleListFilter):
    """Filters existing clones, or tombstones."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("existing", "Existing"), ("deleted", "Deleted")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[VoiceClone]
    ) -> QuerySet[VoiceClone]:
        if self.value() == "existing":
            return queryset.filter(deleted_at=None)
        if self.value() == "deleted":
            return queryset.exclude(deleted_at=None)
        return queryset


class OverdueFilter(admin.SimpleListFilter):
    title = "deletion"
    parameter_name = "deletion"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("due", "Due"), ("overdue", "Overdue: the backend does not answer")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[CloneUpload]
    ) -> QuerySet[CloneUpload]:
        due = queryset.exclude(delete_after=None)
        if self.value() == "due":
            return due
        if self.value() == "overdue":
            return due.filter(clone__deleted_at__lte=clock.now() - OVERDUE_AFTER)
        return queryset


if TYPE_CHECKING:  # generic in the stubs only
    UploadModelAdmin = admin.ModelAdmin[CloneUpload]
else:
    UploadModelAdmin = admin.ModelAdmin


@admin.register(VoiceClone)
class VoiceCloneAdmin(SecretColumnsAdmin):
    """Operators can view and delete clones, but not play, add or edit them."""

    secret_columns: ClassVar[frozenset[str]] = frozenset({"profile"})

    list_display = (
        "name",
        "organization",
        "standing",
        "reference_seconds",
        "clip_kept",
        "natural",
        "created_at",
        "id",
    )
    list_filter = (CloneStateFilter,)
    list_select_related = ("organization",)
    search_fields = ("=id", "name", "organization__name", "=organization__id")
    search_help_text = "A clone's id or name, or its account's."
    show_full_result_count = False
    actions = ("delete_clones",)
    fields = (
        "id",
        "name",
        "organization",
        "api_key_id",
        "slot",
        "reference_seconds",
        "created_at",
        "deleted_at",
        "clip_kept",
        "natural",
        "copies",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[VoiceClone]:
        kept = Exists(CloneAudio.objects.filter(clone=OuterRef("pk")))
        rows: QuerySet[VoiceClone] = super().get_queryset(request).defer("profile")
        mixed = Q(profile__has_key=registry.MIX)
        return rows.annotate(kept=kept, mixed=mixed).order_by("-created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: VoiceClone | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: VoiceClone | None = None) -> bool:
        # Django's own deletion would remove the tombstone too; the action below keeps it.
        return False

    def has_tombstone_permission(self, request: HttpRequest) -> bool:
        """Whether the operator may use ``delete_clones``."""
        return request.user.has_perm("speech.delete_voiceclone")

    @admin.action(description="Delete selected voice clones", permissions=["tombstone"])
    def delete_clones(self, request: HttpRequest, chosen: QuerySet[VoiceClone]) -> None:
        """Delete each clone as ``DELETE /v1/voices/{id}`` does."""
        deleted = 0
        for clone in chosen:
            try:
                with transaction.atomic():
                    registry.delete(clone.pk, str(clone.organization_id))
                    trail.record("deleted", clone, {})
            except CloneNotFound:
                continue
            deleted += 1
        outbox.nudge()
        self.message_user(
            request,
            f"{deleted} voice clones deleted; they have stopped working, their clips are deleted.",
            messages.SUCCESS,
        )

    @admin.display(description="status", ordering="deleted_at")
    def standing(self, clone: VoiceClone) -> SafeString:
        return badge("deleted", Tone.QUIET) if clone.deleted_at else badge("in use", Tone.GOOD)

    @admin.display(boolean=True, description="clip kept")
    def clip_kept(self, clone: Any) -> bool:
        return bool(clone.kept)

    @admin.display(boolean=True, description="natural voice")
    def natural(self, clone: Any) -> bool:
        """Whether the neural engine can speak it."""
        return bool(clone.mixed)

    @admin.display(description="copies on speech backends", empty_value="none")
    def copies(self, clone: VoiceClone) -> str | None:
        uploads = clone.uploads.select_related("backend")
        return ", ".join(f"{upload} on {upload.backend}" for upload in uploads) or None


@admin.register(CloneUpload)
class CloneUploadAdmin(UploadModelAdmin):
    """Copies on speech backends.

    A row is deleted only when its backend no longer exists, and so is switched off: without the row
    the gateway does not ask the backend to delete the clip and the voice.
    """

    list_display = ("upstream_name", "backend", "clone", "created_at", "delete_after")
    list_filter = (OverdueFilter, "backend")
    list_select_related = ("backend", "clone")
    search_fields = ("=upstream_name", "=clone__id")
    fields = list_display
    readonly_fields = list_display
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: CloneUpload | None = None) -> bool:
        may_be_gone = obj is None or not obj.backend.enabled
        return may_be_gone and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: CloneUpload) -> None:
        with transaction.atomic():
            gone = {"clone": (obj.clone_id, None), "backend": (str(obj.backend), None)}
            trail.record("deleted", obj, gone)
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CloneUpload]) -> None:
        with transaction.atomic():
            for upload in queryset.select_related("backend", "clone"):
                self.delete_model(request, upload)
