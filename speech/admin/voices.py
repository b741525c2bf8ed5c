"""The operators' pages of voices, speech backends, clones and their copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from accounts.audit import trail
from speech.admin.filters import CloneStateFilter, OverdueFilter
from speech.admin.spoken_word import speak_word
from speech.engines import embedded
from speech.errors import CloneNotFound
from speech.models import CloneAudio, CloneUpload, EmbeddedEngine, SpeechBackend, Voice, VoiceClone
from speech.serving import monitoring
from speech.voices.clones import rows as registry
from speech.voices.clones.outbox import outbox
from svc_project.lib import variables
from svc_project.lib.admin.backend_test import Step, TestedBackendAdmin, failed, try_step
from svc_project.lib.admin.columns import Tone, badge
from svc_project.lib.admin.lookups import SecretColumnsAdmin

if TYPE_CHECKING:  # generic in the stubs only
    VoiceModelAdmin = admin.ModelAdmin[Voice]
    UploadModelAdmin = admin.ModelAdmin[CloneUpload]
else:
    VoiceModelAdmin = admin.ModelAdmin
    UploadModelAdmin = admin.ModelAdmin


@admin.register(Voice)
class VoiceAdmin(VoiceModelAdmin):
    """Global voices. Clients send the id, so it cannot be changed."""

    list_display = ("id", "served", "language", "engine", "engine_voice", "enabled")
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
        speed = (
            monitoring.neural_speed() if voice.embedded_engine == EmbeddedEngine.KOKORO else None
        )
        return f"embedded ({voice.get_embedded_engine_display()}{f', {speed}' if speed else ''})"

    @admin.display(description="served to")
    def served(self, voice: Voice) -> str:
        """The accounts that can use the voice now."""
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
class SpeechBackendAdmin(TestedBackendAdmin):
    test_words = "A test has one word spoken by the first voice that uses the backend."
    list_display = (
        "name",
        "standing",
        "spoken",
        "serves_clones",
        "delivery",
        "max_concurrency",
        "base_url",
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

    def steps(self, backend: SpeechBackend) -> AsyncIterator[Step]:
        if unread := variables.problem(backend.api_key_env):
            return failed(Step("Key", False, unread, 0))
        voice = Voice.objects.filter(backend=backend, enabled=True).order_by("pk").first()
        if voice is None:
            return failed(Step("Voice", False, "No voice that is switched on uses it: add one.", 0))
        return _spoken(backend, voice)

    @admin.display(description="status")
    def standing(self, backend: Any) -> SafeString:
        problems = self.problems(backend)
        if problems != "none":
            return badge(problems, Tone.BAD if backend.enabled else Tone.QUIET)
        return badge("ready", Tone.GOOD)

    @admin.display(description="voices", ordering="speaking")
    def spoken(self, backend: Any) -> int:
        return int(backend.speaking)

    @admin.display(description="problems")
    def problems(self, backend: Any) -> str:
        """The problems of the backend that this process can see."""
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


async def _spoken(backend: SpeechBackend, voice: Voice) -> AsyncIterator[Step]:
    yield await try_step(f"One word by {voice.pk}", partial(speak_word, backend, voice))


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
            self.log_change(request, clone, "Deleted.")
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

    @admin.display(description="copies on speech backends", empty_value="none")
    def copies(self, clone: VoiceClone) -> str | None:
        uploads = clone.uploads.select_related("backend")
        return ", ".join(f"{upload} on {upload.backend}" for upload in uploads) or None


@admin.register(CloneUpload)
class CloneUploadAdmin(UploadModelAdmin):
    """Copies on speech backends. Delete a row only when its backend no longer exists."""

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
