"""The description of a speech server: plain data, without the ORM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
