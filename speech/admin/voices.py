"""The operators' pages of voices and speech backends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from accounts.audit import trail
from core import variables
from core.admin.backends import Link, Step, StepFailed, TestedBackendAdmin, failed, try_step
from core.admin.columns import NOTHING, Tone, badge
from speech.audio.pcm import duration
from speech.engines import EngineError, Utterance, embedded
from speech.engines.http.engine import HttpEngine
from speech.models import LABELS, EmbeddedEngine, Language, SpeechBackend, Voice, VoiceServer
from speech.serving import monitoring
from speech.voices.clones.clips import clips
from speech.voices.snapshot import backend_ref

_WORDS: Final[Mapping[str, str]] = {Language.ENGLISH: "One.", Language.HINDI: "एक।"}


async def speak_word(backend: SpeechBackend, voice: Voice) -> str:
    """Have ``backend`` speak a word by ``voice``; return how long it sounds. Raises ``StepFailed``."""
    engine = HttpEngine(backend_ref(backend), clips)
    utterance = Utterance(_WORDS[voice.language], voice.language, voice.engine_voice)
    sound = bytearray()
    try:
        async with aclosing(engine.speak(utterance)) as pieces:
            async for piece in pieces:
                sound += piece
    except EngineError as error:
        raise StepFailed(str(error)) from None
    finally:
        await engine.close()
    return f"{duration(bytes(sound)):.2f} s of sound"


if TYPE_CHECKING:  # generic in the stubs only
    VoiceModelAdmin = admin.ModelAdmin[Voice]
else:
    VoiceModelAdmin = admin.ModelAdmin


if TYPE_CHECKING:  # generic in the stubs only
    ServerInline = admin.TabularInline[VoiceServer, Voice]
else:
    ServerInline = admin.TabularInline


class FurtherServers(ServerInline):
    """The speech backends that speak a voice beside its own."""

    model = VoiceServer
    extra = 0
    verbose_name = "further server"
    verbose_name_plural = "further servers"


class LabelFilter(admin.AllValuesFieldListFilter):
    """Filters by a label in free words; the choice of voices without it has a name, too."""

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for each in super().choices(changelist):
            yield {**each, "display": each["display"] or self.empty_value_display}


@admin.register(Voice)
class VoiceAdmin(VoiceModelAdmin):
    """Global voices. Clients send the id, so it cannot be changed."""

    list_display = ("id", "served", "language", "engine", "engine_voice", *LABELS, "enabled")
    list_filter = (
        *("language", "enabled", "embedded_engine", "backend", "gender", "age"),
        *((name, LabelFilter) for name in ("accent", "style")),
    )
    list_select_related = ("backend",)
    search_fields = ("id", "engine_voice")
    actions = None
    fields = (
        "id",
        "language",
        "backend",
        "embedded_engine",
        "engine_voice",
        "neural_voice",
        "mixed_into_clones",
        "weight",
        "enabled",
        *LABELS,
        "served",
        "created_at",
    )
    inlines = (FurtherServers,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Voice]:
        rows: QuerySet[Voice] = super().get_queryset(request)
        return rows.prefetch_related("servers__backend")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Voice | None = None
    ) -> tuple[str, ...]:
        return ("served", "created_at") if obj is None else ("id", "served", "created_at")

    @admin.display(description="engine", ordering="backend__name")
    def engine(self, voice: Voice) -> str:
        if voice.backend:
            return ", ".join(each.name for each in _backends(voice))
        engine = voice.get_embedded_engine_display()
        if voice.neural_voice:
            engine = f"{EmbeddedEngine.KOKORO.label}, else {engine}"
        is_neural = voice.neural_voice or voice.embedded_engine == EmbeddedEngine.KOKORO
        speed = monitoring.neural_speed() if is_neural else None
        return f"embedded ({engine}{f', {speed}' if speed else ''})"

    @admin.display(description="served to")
    def served(self, voice: Voice) -> str:
        """The accounts that can use the voice now."""
        if voice._state.adding:
            return NOTHING
        if not voice.enabled:
            return "no account: disabled"
        backends = _backends(voice)
        if backends and not any(each.enabled for each in backends):
            names = ", ".join(each.name for each in backends)
            return f"no account: {names} {'is' if len(backends) == 1 else 'are'} disabled"
        problem = embedded.problem(voice.embedded_engine, settings.SVC_NEURAL_DIR)
        if voice.backend is None and problem is not None:
            return f"no account: {problem}"
        return "enterprise accounts" if voice.language == "hi" else "every account"


def _backends(voice: Voice) -> list[SpeechBackend]:
    """The speech backends of ``voice``, its own first."""
    if voice.backend is None:
        return []
    return [voice.backend, *(each.backend for each in voice.servers.all())]


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
        ("What it sends", {"fields": ("delivery", "sample_rate", "word_times")}),
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
        speaking = Count("voices", filter=Q(voices__enabled=True), distinct=True) + Count(
            "further_voices", filter=Q(further_voices__voice__enabled=True), distinct=True
        )
        rows: QuerySet[SpeechBackend] = super().get_queryset(request).annotate(speaking=speaking)
        return rows

    def record_test(self, backend: Any) -> None:
        trail.record_values("tested", backend, "base_url", "api_key_env")

    def steps(self, backend: SpeechBackend) -> AsyncIterator[Step]:
        if unread := variables.problem(backend.api_key_env):
            page = reverse("admin:speech_speechbackend_change", args=[backend.pk])
            variable = Link("Name another variable", f"{page}#id_api_key_env")
            return failed(Step("Key", False, unread, 0, (variable,)))
        voice = _voice_of(backend)
        if voice is None:
            add = Link("Add a voice", reverse("admin:speech_voice_add"), ("speech.add_voice",))
            return failed(Step("Voice", False, "No voice that is switched on uses it.", 0, (add,)))
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
            return NOTHING
        found = []
        if not backend.enabled:
            found.append("It is switched off.")
        if not backend.speaking and not backend.serves_clones:
            found.append("No voice uses it, and it serves no clones.")
        if unread := variables.problem(backend.api_key_env):
            found.append(unread)
        return " ".join(found) or "none"


def _voice_of(backend: SpeechBackend) -> Voice | None:
    """A voice that ``backend`` speaks, with its own name of it."""
    voices = Voice.objects.filter(enabled=True).order_by("pk")
    if (voice := voices.filter(backend=backend).first()) is not None:
        return voice
    further = backend.further_voices.filter(voice__enabled=True).select_related("voice").first()
    if further is None:
        return None
    further.voice.engine_voice = further.engine_voice or further.voice.engine_voice
    return further.voice


async def _spoken(backend: SpeechBackend, voice: Voice) -> AsyncIterator[Step]:
    yield await try_step(f"One word by {voice.pk}", partial(speak_word, backend, voice))
