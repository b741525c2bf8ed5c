"""Voices as the hot path reads them: frozen, complete, without a queryset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from speech.clones.profile import CloneProfile


@dataclass(frozen=True, slots=True)
class BackendRef:
    """A speech backend and how to speak to it; the columns of ``speech.models.SpeechBackend``."""

    id: str
    name: str
    base_url: str
    """Without a slash at its end."""
    api_key: str | None = field(repr=False)
    model: str
    delivery: str
    sample_rate: int
    speech_path: str
    text_field: str
    voice_field: str
    format_field: str
    language_field: str
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


@dataclass(frozen=True, slots=True)
class CloneRef:
    """A clone as it was when a sentence began."""

    id: str
    organization_id: str
    profile: CloneProfile | None


@dataclass(frozen=True, slots=True)
class VoiceRef:
    """A voice that the caller may use: a global one, or a clone of its organization.

    ``backend`` is None for the embedded engine; ``clone`` is None for a global voice.
    """

    id: str
    language: str
    engine_voice: str
    backend: BackendRef | None
    clone: CloneRef | None = None
