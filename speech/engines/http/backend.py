"""The description of a speech server: plain data, without the ORM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class BackendRef:
    """A speech backend and its API; the columns of ``speech.models.SpeechBackend``."""

    id: str
    name: str
    base_url: str
    """Without a slash at its end."""
    api_key: str | None = field(repr=False)
    model: str
    delivery: str
    sample_rate: int
    word_times: str
    speech_path: str
    text_field: str
    voice_field: str
    format_field: str
    language_field: str
    speed_field: str
    instructions_field: str
    normalizes_text: bool
    extra_fields: Mapping[str, Any]
    sounds: Mapping[str, str]
    clone_mode: str
    clone_field: str
    clone_as_data_url: bool
    upload_path: str
    upload_name_field: str
    upload_extra_fields: Mapping[str, Any]
    max_concurrency: int
    first_byte_seconds: float
    total_seconds: float

    @property
    def has_word_times(self) -> bool:
        """Whether it says when it speaks each word."""
        return self.word_times != "none"

    def takes_same_text(self, other: BackendRef) -> bool:
        """Whether a text that was prepared for one is what the other takes."""
        return self.normalizes_text == other.normalizes_text and self.sounds == other.sounds


DEFAULT_WEIGHT: Final = 100
"""The share of a server that was given none."""


@dataclass(frozen=True, slots=True)
class ServerRef:
    """A server of a voice: the voice's name there, and the share of requests that it gets."""

    backend: BackendRef
    engine_voice: str
    weight: int = DEFAULT_WEIGHT
