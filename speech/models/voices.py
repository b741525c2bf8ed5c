"""The global voices of the catalog."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from core import clock
from core.backends.validators import AT_LEAST_ONE
from speech.engines import EngineError, embedded
from speech.engines.http.backend import DEFAULT_WEIGHT
from speech.models.backends import SpeechBackend
from speech.text.language import Language

VOICE_ID = r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z"


VOICE_ID_RULE = (
    "Use at most 80 letters, digits, '.', '_' and '-', and begin with a letter or digit."
)


LANGUAGES = [
    (Language.ENGLISH.value, "English"),
    (Language.HINDI.value, "Hindi (enterprise accounts only)"),
]


LABELS: Final = ("gender", "accent", "age", "style")
"""The columns of a voice that say how it sounds."""


class EmbeddedEngine(models.TextChoices):
    """An engine that runs on this machine."""

    ESPEAK = embedded.ESPEAK, "espeak-ng"
    KOKORO = embedded.KOKORO, "Kokoro-82M (neural)"


class Gender(models.TextChoices):
    """How a voice sounds."""

    FEMALE = "female", "female"
    MALE = "male", "male"
    NEUTRAL = "neutral", "neutral"


class Age(models.TextChoices):
    """How old a voice sounds."""

    YOUNG = "young", "young"
    MIDDLE_AGED = "middle-aged", "middle-aged"
    OLD = "old", "old"


def _label(**options: Any) -> models.CharField[str, str]:
    """What people look for in a voice; engines do not say it. Empty where nobody has said it."""
    return models.CharField(max_length=40, blank=True, default="", db_default="", **options)


class Voice(models.Model):
    """A global voice (speech contract, Model entry); an embedded engine's if it has no backend."""

    id = models.CharField(
        primary_key=True,
        max_length=80,
        validators=[RegexValidator(VOICE_ID, VOICE_ID_RULE)],
        help_text="What clients send as voice; also the name that clones cannot take.",
    )
    language = models.CharField(max_length=2, choices=LANGUAGES, default=Language.ENGLISH.value)
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
    neural_voice = models.CharField(
        max_length=120,
        blank=True,
        db_default="",
        help_text="Kokoro's voice, such as af_heart, that speaks it instead of espeak-ng's where the neural "
        "engine is installed, fast enough for live streams and free. Empty: always as above.",
    )
    mixed_into_clones = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Clones are mixed of the neural voices that are marked so, and spoken by the neural engine "
        "where it can; with none marked, by espeak-ng alone.",
    )
    weight = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[AT_LEAST_ONE],
        help_text=f"The backend's share of requests beside further servers. Empty: {DEFAULT_WEIGHT}.",
    )
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    gender = _label(choices=Gender.choices)
    accent = _label(help_text="Such as American.")
    age = _label(choices=Age.choices)
    style = _label(help_text="In a word or two, such as warm, or newsreader.")

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
        """Check that the embedded engine has the voice, in the same language.

        An enabled voice also needs an engine that can run here; a neural voice beside it does not, since the
        other one speaks where it cannot.
        """
        super().clean()
        if self.neural_voice:
            self._check_neural_voice()
        if self.mixed_into_clones and not self._can_be_mixed:
            raise ValidationError(
                {"mixed_into_clones": "Only an English voice that the neural engine speaks can be."}
            )
        if self.backend_id is not None:
            return
        self._check_language("engine_voice", self.embedded_engine)
        problem = embedded.problem(self.embedded_engine, settings.SVC_NEURAL_DIR)
        if self.enabled and problem is not None:
            raise ValidationError({"embedded_engine": problem})

    @property
    def _can_be_mixed(self) -> bool:
        is_neural = self.neural_voice or self.embedded_engine == EmbeddedEngine.KOKORO
        return self.backend_id is None and bool(is_neural) and self.language == Language.ENGLISH

    def _check_neural_voice(self) -> None:
        if self.backend_id is not None or self.embedded_engine != EmbeddedEngine.ESPEAK:
            raise ValidationError(
                {"neural_voice": "Only a voice of espeak-ng can have a neural one beside it."}
            )
        self._check_language("neural_voice", EmbeddedEngine.KOKORO)

    def _check_language(self, field: str, engine: str) -> None:
        """Raise ``ValidationError`` unless ``engine`` has the voice in ``field``, in this language."""
        engine_voice = getattr(self, field)
        try:
            spoken = embedded.language_of(engine, engine_voice)
        except EngineError as error:
            raise ValidationError({field: str(error)}) from None
        if spoken != self.language:
            raise ValidationError({field: f"{engine_voice} speaks {spoken}, not {self.language}."})


class VoiceServer(models.Model):
    """A further speech backend of a voice, beside ``Voice.backend``."""

    voice = models.ForeignKey(Voice, on_delete=models.CASCADE, related_name="servers")
    backend = models.ForeignKey(
        SpeechBackend, on_delete=models.PROTECT, related_name="further_voices"
    )
    engine_voice = models.CharField(
        max_length=120, blank=True, help_text="Its own name of the voice. Empty: as above."
    )
    weight = models.PositiveIntegerField(
        default=DEFAULT_WEIGHT,
        validators=[AT_LEAST_ONE],
        help_text="Its share of requests beside the other servers of the voice.",
    )

    class Meta:
        verbose_name = "further server of a voice"
        verbose_name_plural = "further servers of voices"
        ordering: ClassVar[list[str]] = ["voice", "pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["voice", "backend"], name="voice_server_once"),
            models.CheckConstraint(condition=Q(weight__gte=1), name="voice_server_weight_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.voice_id} on {self.backend}"

    def clean(self) -> None:
        """Check that the voice has a backend, another one, which takes the same text."""
        super().clean()
        first = self.voice.backend
        if first is None:
            raise ValidationError("A voice of an embedded engine has no further servers.")
        other = SpeechBackend.objects.filter(pk=self.backend_id).first()
        if other is None:
            return
        if first == other:
            raise ValidationError({"backend": "It is the voice's backend already."})
        for name in ("normalizes_text", "sounds"):
            if getattr(first, name) != getattr(other, name):
                raise ValidationError(
                    {"backend": f"Its {name} must be that of {first}: both get the same text."}
                )
