"""The tables of the speech surface: voices, the servers that speak them, and private clones.

What must hold under any race is held by the database: at most ``MOST_CLONES`` clones of an
organization and one name among them (speech contract, States and transitions).
"""

from __future__ import annotations

import json
import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from accounts.models import Organization
from speech.clones.names import MAX_NAME_KEY_LENGTH, MAX_NAME_LENGTH
from speech.engines import EngineError, embedded
from speech.errors import MOST_CLONES
from speech.text.tags import SoundName
from svc_project.lib import clock
from svc_project.lib.rules import AT_LEAST_ONE, BASE_URL, VARIABLE, check_base_url, positive
from svc_project.lib.variables import check_key_variable

SOUNDS = frozenset(name.value for name in SoundName)
"""Audio tags that a backend may have a spelling of."""

VOICE_ID = r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z"
VOICE_ID_RULE = (
    "Use at most 80 letters, digits, '.', '_' and '-', and begin with a letter or digit."
)


class Delivery(models.TextChoices):
    """How a speech backend hands over its audio."""

    FILE = "file", "one complete file (wav, mp3, flac or ogg)"
    PCM = "pcm", "raw PCM, streamed (signed 16-bit little-endian, mono)"
    SSE = "sse", "server-sent events with base64 PCM (speech.audio.delta)"


class CloneMode(models.TextChoices):
    """How a speech backend is given a clone's reference clip."""

    NONE = "none", "it does not clone"
    INLINE = "inline", "with each request"
    UPLOAD = "upload", "uploaded once, under a random name"


class Language(models.TextChoices):
    ENGLISH = "en", "English"
    HINDI = "hi", "Hindi (enterprise accounts only)"


class EmbeddedEngine(models.TextChoices):
    """An engine that runs on this machine."""

    ESPEAK = embedded.ESPEAK, "espeak-ng"
    KOKORO = embedded.KOKORO, "Kokoro-82M (neural)"


class SpeechBackend(models.Model):
    """A server that speaks, by the OpenAI-compatible audio-speech convention."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80, unique=True)
    base_url = models.CharField(
        "base URL",
        max_length=300,
        validators=[check_base_url],
        help_text="Up to and including /v1, such as http://10.0.0.5:9100/v1.",
    )
    api_key_env = models.CharField(
        "API key variable",
        max_length=100,
        blank=True,
        validators=[RegexValidator(VARIABLE, "Give the name of a variable, not a key.")],
        help_text="Name of the environment variable that holds the backend's key. Empty: no key.",
    )
    model = models.CharField(max_length=200, help_text="Sent as model.")
    delivery = models.CharField(
        max_length=8, choices=Delivery.choices, default=Delivery.FILE, help_text="What it sends."
    )
    sample_rate = models.PositiveIntegerField(
        default=24_000,
        validators=[MinValueValidator(8_000), MaxValueValidator(192_000)],
        help_text="Samples per second of its raw PCM, where the answer itself names no rate.",
    )
    speech_path = models.CharField(
        max_length=100, default="/audio/speech", help_text="Added to the base URL."
    )
    text_field = models.CharField(max_length=40, default="input")
    voice_field = models.CharField(max_length=40, default="voice")
    format_field = models.CharField(max_length=40, default="response_format", blank=True)
    language_field = models.CharField(
        max_length=40, blank=True, help_text="Empty: the language is not sent."
    )
    speed_field = models.CharField(
        max_length=40,
        default="speed",
        blank=True,
        help_text="Empty: it speaks at its own pace, whatever speed was asked for.",
    )
    instructions_field = models.CharField(
        max_length=40, blank=True, help_text="Empty: instructions are not sent."
    )
    normalizes_text = models.BooleanField(
        default=False,
        help_text="It writes out figures, dates and signs itself; it is given the text as written.",
    )
    extra_fields = models.JSONField(
        default=dict,
        blank=True,
        help_text='Sent with each request as they are, such as {"stream_format": "audio"}.',
    )
    sounds = models.JSONField(
        default=dict,
        blank=True,
        help_text='Its spelling of audio tags, such as {"laughs": "<laugh>"}. Others are dropped.',
    )
    clone_mode = models.CharField(max_length=8, choices=CloneMode.choices, default=CloneMode.NONE)
    clone_field = models.CharField(
        max_length=40,
        default="ref_audio",
        help_text="inline: the field of the reference clip. upload: the part that carries it.",
    )
    clone_as_data_url = models.BooleanField(
        default=True, help_text="inline: send data:audio/wav;base64,...; off: bare base64."
    )
    upload_path = models.CharField(
        max_length=100, default="/audio/voices", help_text="upload: added to the base URL."
    )
    upload_name_field = models.CharField(max_length=40, default="name")
    upload_extra_fields = models.JSONField(
        default=dict, blank=True, help_text='upload: such as {"consent": "true"}.'
    )
    serves_clones = models.BooleanField(
        default=False,
        help_text="Clones are spoken by this backend. With none, by the embedded engine.",
    )
    max_concurrency = models.PositiveIntegerField(default=16, validators=[AT_LEAST_ONE])
    enabled = models.BooleanField(default=True)
    first_byte_seconds = models.FloatField(
        null=True, blank=True, help_text="Empty: SVC_SPEECH_FIRST_BYTE_SECONDS."
    )
    total_seconds = models.FloatField(
        null=True, blank=True, help_text="Empty: SVC_SPEECH_TOTAL_SECONDS."
    )

    class Meta:
        verbose_name = "speech backend"
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(base_url__regex=BASE_URL),
                name="speech_backend_base_url_well_formed",
                violation_error_message="base_url must be http(s)://host[:port][/path].",
            ),
            models.UniqueConstraint(
                fields=["serves_clones"],
                condition=Q(serves_clones=True),
                name="speech_backend_one_serves_clones",
                violation_error_message="Another backend serves the clones already.",
            ),
            models.CheckConstraint(
                condition=Q(serves_clones=False) | ~Q(clone_mode="none"),
                name="speech_backend_clones_need_a_mode",
                violation_error_message="To serve clones, choose how it is given the clip.",
            ),
            positive(
                "speech_backend_figures_positive",
                "max_concurrency",
                "first_byte_seconds",
                "total_seconds",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        check_base_url(self.base_url)
        self._check_paths()
        super().save(*args, **kwargs)

    def _check_paths(self) -> None:
        """Written behind a host, anything else than a path would name another host."""
        for name in ("speech_path", "upload_path"):
            if not getattr(self, name).startswith("/"):
                raise ValidationError({name: "Begin the path with a slash."})

    def clean(self) -> None:
        """What goes into requests is JSON, ``sounds`` names tags that exist, paths are paths."""
        super().clean()
        self._check_paths()
        try:
            check_key_variable(self.api_key_env)
        except ValidationError as error:
            raise ValidationError({"api_key_env": error.messages}) from None
        for name in ("extra_fields", "upload_extra_fields"):
            _require_json_object(name, getattr(self, name))
        for tag, spelling in _require_json_object("sounds", self.sounds).items():
            if tag not in SOUNDS:
                raise ValidationError(
                    {"sounds": f"There is no audio tag {tag!r}. Use {', '.join(sorted(SOUNDS))}."}
                )
            if not isinstance(spelling, str):
                raise ValidationError({"sounds": f"Give the spelling of {tag} as text."})


class Voice(models.Model):
    """A global voice (speech contract, Model entry). Without a backend an embedded engine speaks."""

    id = models.CharField(
        primary_key=True,
        max_length=80,
        validators=[RegexValidator(VOICE_ID, VOICE_ID_RULE)],
        help_text="What clients send as voice; also the name that clones cannot take.",
    )
    language = models.CharField(max_length=2, choices=Language.choices, default=Language.ENGLISH)
    backend = models.ForeignKey(
        SpeechBackend,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="voices",
        help_text="Empty: the embedded engine.",
    )
    embedded_engine = models.CharField(
        max_length=16,
        choices=EmbeddedEngine.choices,
        default=EmbeddedEngine.ESPEAK,
        help_text="Which one speaks where there is no backend.",
    )
    engine_voice = models.CharField(
        max_length=120, help_text="The engine's own name of it, such as en-us+f3 or af_heart."
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(id__regex=VOICE_ID),
                name="voice_id_well_formed",
                violation_error_message=VOICE_ID_RULE,
            ),
        ]

    def __str__(self) -> str:
        return self.id

    def clean(self) -> None:
        """The embedded engines' voices are known, and which language each speaks.

        An enabled voice needs an engine that can run here.
        """
        super().clean()
        if self.backend_id is not None:
            return
        try:
            spoken = embedded.language_of(self.embedded_engine, self.engine_voice)
        except EngineError as error:
            raise ValidationError({"engine_voice": str(error)}) from None
        if spoken != self.language:
            raise ValidationError(
                {"engine_voice": f"{self.engine_voice} speaks {spoken}, not {self.language}."}
            )
        problem = embedded.problem(self.embedded_engine, settings.SVC_NEURAL_DIR)
        if self.enabled and problem is not None:
            raise ValidationError({"embedded_engine": problem})


def _require_json_object(name: str, value: Any) -> dict[str, Any]:
    """``value``, which a request can carry as it is. Raises ``ValidationError``."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValidationError({name: "It holds a value that JSON does not have."}) from None
    if not isinstance(value, dict):
        raise ValidationError({name: 'Give a JSON object, such as {"name": "value"}.'})
    return value


class VoiceClone(models.Model):
    """A private voice (speech contract, Voice clone), or the tombstone of one.

    ``slot`` numbers an organization's existing clones from 1 to ``MOST_CLONES``; a tombstone has
    none. A unique slot is how the database counts: two requests for the last place cannot both
    have it.
    """

    id = models.CharField(primary_key=True, max_length=40, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="clones", editable=False
    )
    api_key_id = models.UUIDField(editable=False)
    name = models.CharField(max_length=MAX_NAME_LENGTH, editable=False)
    name_key = models.CharField(max_length=MAX_NAME_KEY_LENGTH, editable=False)
    slot = models.PositiveSmallIntegerField(null=True, editable=False)
    reference_seconds = models.FloatField(editable=False)
    profile = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "voice clone"
        ordering: ClassVar[list[str]] = ["organization", "created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organization", "slot"], name="clone_slot_once"),
            models.UniqueConstraint(
                fields=["organization", "name_key"],
                condition=Q(deleted_at=None),
                name="clone_name_once",
            ),
            models.CheckConstraint(
                # An unknown condition passes a check, so a missing slot is ruled out by name.
                condition=Q(deleted_at=None, slot__isnull=False, slot__gte=1, slot__lte=MOST_CLONES)
                | Q(deleted_at__isnull=False, slot=None),
                name="clone_slot_of_an_existing_one",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CloneAudio(models.Model):
    """A clone's reference clip, sealed by ``speech.clones.storage``; gone with the deletion."""

    clone = models.OneToOneField(
        VoiceClone, primary_key=True, on_delete=models.CASCADE, related_name="audio"
    )
    sealed = models.BinaryField()

    def __str__(self) -> str:
        return str(self.clone_id)


class CloneUpload(models.Model):
    """A copy of a reference clip on a speech backend, kept on record until the backend dropped it.

    ``delete_after`` is null while the clone exists; then it is when to ask the backend next. No
    row of a clone or of a backend goes away while copies are out there.
    """

    clone = models.ForeignKey(
        VoiceClone, on_delete=models.PROTECT, related_name="uploads", editable=False
    )
    backend = models.ForeignKey(
        SpeechBackend, on_delete=models.PROTECT, related_name="uploads", editable=False
    )
    upstream_name = models.CharField(max_length=200, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    delete_after = models.DateTimeField(null=True, db_index=True, editable=False)

    class Meta:
        verbose_name = "upstream copy of a clone"
        verbose_name_plural = "upstream copies of clones"
        ordering: ClassVar[list[str]] = ["created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["backend", "upstream_name"], name="clone_upload_name_once"
            ),
        ]

    def __str__(self) -> str:
        return self.upstream_name
