"""The operators' pages of voices, speech backends, clones and their copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest

from accounts import audit
from speech import present
from speech.admin_filters import CloneStateFilter, OverdueFilter
from speech.clones import registry
from speech.clones.outbox import outbox
from speech.engines import embedded
from speech.errors import CloneNotFound
from speech.models import CloneAudio, CloneUpload, EmbeddedEngine, SpeechBackend, Voice, VoiceClone
from svc_project.lib import variables
from svc_project.lib.admin_lookups import SecretColumnsAdmin
from svc_project.lib.backend_admin import KeptKeyAdmin

if TYPE_CHECKING:  # generic in the stubs only
    VoiceModelAdmin = admin.ModelAdmin[Voice]
    UploadModelAdmin = admin.ModelAdmin[CloneUpload]
else:
    VoiceModelAdmin = admin.ModelAdmin
    UploadModelAdmin = admin.ModelAdmin


@admin.register(Voice)
class VoiceAdmin(VoiceModelAdmin):
    """Global voices. The id is what clients send, so it is given once."""

    list_display = ("id", "language", "engine", "engine_voice", "enabled", "served")
    list_filter = ("language", "enabled", "embedded_engine", "backend")
    list_select_related = ("backend",)
    search_fields = ("id", "engine_voice")
    actions = None
    fields = (
        "id",
        "language",
        "backend",
        "embedded_engine",
        "engine_voice",
        "enabled",
        "served",
        "created_at",
    )

    def get_readonly_fields(
        self, request: HttpRequest, obj: Voice | None = None
    ) -> tuple[str, ...]:
        return ("served", "created_at") if obj is None else ("id", "served", "created_at")

    @admin.display(description="engine", ordering="backend__name")
    def engine(self, voice: Voice) -> str:
        if voice.backend:
            return voice.backend.name
        speed = present.neural_speed() if voice.embedded_engine == EmbeddedEngine.KOKORO else None
        return f"embedded ({voice.get_embedded_engine_display()}{f', {speed}' if speed else ''})"

    @admin.display(description="served to")
    def served(self, voice: Voice) -> str:
        """Who can use it now."""
        if voice._state.adding:
            return "-"
        if not voice.enabled:
            return "nobody: it is switched off"
        if voice.backend is not None and not voice.backend.enabled:
            return f"nobody: {voice.backend} is switched off"
        problem = embedded.problem(voice.embedded_engine, settings.SVC_NEURAL_DIR)
        if voice.backend is None and problem is not None:
            return f"nobody: {problem}"
        return "enterprise accounts" if voice.language == "hi" else "every account"


@admin.register(SpeechBackend)
class SpeechBackendAdmin(KeptKeyAdmin):
    list_display = (
        "name",
        "base_url",
        "enabled",
        "delivery",
        "serves_clones",
        "max_concurrency",
        "spoken",
        "problems",
    )
    list_filter = ("enabled", "delivery", "clone_mode")
    search_fields = ("name", "base_url")
    actions = None
    readonly_fields = ("problems",)
    fieldsets = (
        (None, {"fields": ("name", "base_url", "api_key_env", "model", "enabled", "problems")}),
        ("What it sends", {"fields": ("delivery", "sample_rate")}),
        (
            "What it is sent",
            {
                "fields": (
                    "speech_path",
                    "text_field",
                    "voice_field",
                    "format_field",
                    "language_field",
                    "speed_field",
                    "instructions_field",
                    "normalizes_text",
                    "extra_fields",
                    "sounds",
                )
            },
        ),
        (
            "Clones",
            {
                "fields": (
                    "serves_clones",
                    "clone_mode",
                    "clone_field",
                    "clone_as_data_url",
                    "upload_path",
                    "upload_name_field",
                    "upload_extra_fields",
                )
            },
        ),
        ("Limits", {"fields": ("max_concurrency", "first_byte_seconds", "total_seconds")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[SpeechBackend]:
        speaking = Count("voices", filter=Q(voices__enabled=True))
        rows: QuerySet[SpeechBackend] = super().get_queryset(request).annotate(speaking=speaking)
        return rows

    @admin.display(description="voices", ordering="speaking")
    def spoken(self, backend: Any) -> int:
        return int(backend.speaking)

    @admin.display(description="problems")
    def problems(self, backend: Any) -> str:
        """What keeps the backend from serving, as far as this process can tell."""
        if backend._state.adding:
            return "-"
        found = []
        if not backend.enabled:
            found.append("It is switched off.")
        if not backend.speaking and not backend.serves_clones:
            found.append("No voice uses it, and it serves no clones.")
        if unread := variables.problem(backend.api_key_env):
            found.append(unread)
        return " ".join(found) or "none"


@admin.register(VoiceClone)
class VoiceCloneAdmin(SecretColumnsAdmin):
    """Clones are looked at and deleted, never played, added or edited."""

    secret_columns: ClassVar[frozenset[str]] = frozenset({"profile"})

    list_display = (
        "name",
        "organization",
        "id",
        "reference_seconds",
        "created_at",
        "deleted_at",
        "clip_kept",
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
        "copies",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[VoiceClone]:
        kept = Exists(CloneAudio.objects.filter(clone=OuterRef("pk")))
        rows: QuerySet[VoiceClone] = super().get_queryset(request).defer("profile")
        return rows.annotate(kept=kept).order_by("-created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: VoiceClone | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: VoiceClone | None = None) -> bool:
        # Django's own deletion would take the tombstone too; the action below does not.
        return False

    def has_tombstone_permission(self, request: HttpRequest) -> bool:
        """Whether the operator may use ``delete_clones``."""
        return request.user.has_perm("speech.delete_voiceclone")

    @admin.action(description="Delete selected voice clones", permissions=["tombstone"])
    def delete_clones(self, request: HttpRequest, chosen: QuerySet[VoiceClone]) -> None:
        """What ``DELETE /v1/voices/{id}`` does, for each of them."""
        deleted = 0
        for clone in chosen:
            try:
                with transaction.atomic():
                    registry.delete(clone.pk, str(clone.organization_id))
                    audit.record("deleted", clone, {})
            except CloneNotFound:
                continue
            self.log_change(request, clone, "Deleted.")
            deleted += 1
        outbox.nudge()
        self.message_user(
            request,
            f"{deleted} voice clones deleted; they have stopped working, their clips are gone.",
            messages.SUCCESS,
        )

    @admin.display(boolean=True, description="clip kept")
    def clip_kept(self, clone: Any) -> bool:
        return bool(clone.kept)

    @admin.display(description="copies on speech backends", empty_value="none")
    def copies(self, clone: VoiceClone) -> str | None:
        uploads = clone.uploads.select_related("backend")
        return ", ".join(f"{upload} on {upload.backend}" for upload in uploads) or None


@admin.register(CloneUpload)
class CloneUploadAdmin(UploadModelAdmin):
    """What speech backends hold. A row is deleted by hand only when its backend is gone for good."""

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
