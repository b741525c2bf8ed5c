"""Speech servers and their APIs."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from core.backends.model_server import ModelServer, base_url_field, well_formed_address
from core.backends.validators import AT_LEAST_ONE, positive
from speech.text.tags import SoundName

SOUNDS = frozenset(name.value for name in SoundName)
"""Audio tags for which a backend may have a spelling."""


class Delivery(models.TextChoices):
    """How a speech backend sends its audio."""

    FILE = "file", "one complete file (wav, mp3, flac or ogg)"
    PCM = "pcm", "raw PCM, streamed (signed 16-bit little-endian, mono)"
    SSE = "sse", "server-sent events with base64 PCM (speech.audio.delta)"


class CloneMode(models.TextChoices):
    """How a speech backend gets a clone's reference clip."""

    NONE = "none", "it does not clone"
    INLINE = "inline", "with each request"
    UPLOAD = "upload", "uploaded once, under a random name"


class WordTimes(models.TextChoices):
    """How a speech backend says when it speaks each word."""

    NONE = "none", "it gives none"
    HEADER = "header", "in X-Word-Timestamps, asked for by word_timestamps (vLLM-Omni)"
    CAPTIONS = "captions", "by /dev/captioned_speech beside /v1 (Kokoro-FastAPI)"


class SpeechBackend(ModelServer):
    """A speech server with the OpenAI-compatible audio-speech convention."""

    base_url = base_url_field("http://10.0.0.5:9100/v1")
    model = models.CharField(max_length=200, help_text="Sent as model.")
    delivery = models.CharField(
        max_length=8, choices=Delivery.choices, default=Delivery.FILE, help_text="What it sends."
    )
    sample_rate = models.PositiveIntegerField(
        default=24_000,
        validators=[MinValueValidator(8_000), MaxValueValidator(192_000)],
        help_text="Samples per second of its raw PCM, where the answer itself names no rate.",
    )
    word_times = models.CharField(
        max_length=8,
        choices=WordTimes.choices,
        default=WordTimes.NONE,
        db_default=WordTimes.NONE,
        help_text="How it says when each word is spoken.",
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
            well_formed_address("speech_backend_base_url_well_formed"),
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

    def check_settings(self) -> None:
        """Check that each is a path: appended to a host, another value could change the host."""
        for name in ("speech_path", "upload_path"):
            if not getattr(self, name).startswith("/"):
                raise ValidationError({name: "Begin the path with a slash."})

    def clean(self) -> None:
        """Check that request fields are JSON, that ``sounds`` names known tags, and the paths."""
        super().clean()
        for name in ("extra_fields", "upload_extra_fields"):
            _require_json_object(name, getattr(self, name))
        for tag, spelling in _require_json_object("sounds", self.sounds).items():
            if tag not in SOUNDS:
                raise ValidationError(
                    {"sounds": f"There is no audio tag {tag!r}. Use {', '.join(sorted(SOUNDS))}."}
                )
            if not isinstance(spelling, str):
                raise ValidationError({"sounds": f"Give the spelling of {tag} as text."})


def _require_json_object(name: str, value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object. Raises ``ValidationError``."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValidationError({name: "It holds a value that JSON does not have."}) from None
    if not isinstance(value, dict):
        raise ValidationError({name: 'Give a JSON object, such as {"name": "value"}.'})
    return value
