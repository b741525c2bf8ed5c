"""Reads the speech tables of a catalog file and checks them without the database.

docs/operate/catalog.md, "The catalog file", describes every table and key.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from svc_project.lib.catalog_tables import Table, require_unique, shape_error

EMBEDDED_ENGINE = "espeak"
"""``engine`` of a voice of the embedded engine; no speech backend can have the name."""

NEURAL_ENGINE = "kokoro"
"""``engine`` of a voice of the neural engine, unless a speech backend has the name."""


class VoiceTable(Table, frozen=True):
    """A ``[[voices]]`` table."""

    id: str
    engine_voice: str
    language: str = "en"
    engine: str = EMBEDDED_ENGINE
    enabled: bool = True


class SpeechBackendTable(Table, frozen=True):
    """A ``[[speech_backends]]`` table: the columns of ``speech.models.SpeechBackend``."""

    name: str
    base_url: str
    model: str
    protocol: Literal["openai"] = "openai"
    api_key_env: str = ""
    delivery: str = "file"
    sample_rate: int = 24_000
    speech_path: str = "/audio/speech"
    text_field: str = "input"
    voice_field: str = "voice"
    format_field: str = "response_format"
    language_field: str = ""
    speed_field: str = "speed"
    instructions_field: str = ""
    normalizes_text: bool = False
    extra_fields: dict[str, Any] = msgspec.field(default_factory=dict)
    sounds: dict[str, str] = msgspec.field(default_factory=dict)
    clone_mode: str = "none"
    clone_field: str = "ref_audio"
    clone_as_data_url: bool = True
    upload_path: str = "/audio/voices"
    upload_name_field: str = "name"
    upload_extra_fields: dict[str, Any] = msgspec.field(default_factory=dict)
    serves_clones: bool = False
    max_concurrency: int = 16
    enabled: bool = True
    first_byte_seconds: float | None = None
    total_seconds: float | None = None


class SpeechTables(Table, frozen=True):
    """The speech part of a file."""

    voices: list[VoiceTable]
    speech_backends: list[SpeechBackendTable]


def read_speech_tables(
    voices: list[dict[str, Any]], speech_backends: list[dict[str, Any]]
) -> SpeechTables:
    """Parse the tables. Raises ``CatalogFileError`` for an unknown or missing key, a wrong type, a
    name given twice."""
    try:
        tables = msgspec.convert(
            {"voices": voices, "speech_backends": speech_backends}, SpeechTables
        )
    except msgspec.ValidationError as error:
        raise shape_error(str(error)) from None
    require_unique([table.id for table in tables.voices], "voices", "id")
    require_unique([table.name for table in tables.speech_backends], "speech_backends", "name")
    return tables
