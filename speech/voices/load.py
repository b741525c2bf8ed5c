"""Applies the speech tables of a catalog file to the database, in one transaction.

Rows that the file does not name are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from django.db import transaction

from accounts.changes import VOICES, lock
from core.catalog_tables import CatalogFileError, Table, require_unique, save, shape_error, update
from speech.engines.http.backend import DEFAULT_WEIGHT
from speech.models import LABELS, EmbeddedEngine, SpeechBackend, Voice, VoiceServer

EMBEDDED_ENGINE = "espeak"
"""``engine`` of a voice of the embedded engine; no speech backend can have the name."""

NEURAL_ENGINE = "kokoro"
"""``engine`` of a voice of the neural engine, unless a speech backend has the name."""


class VoiceServerTable(Table, frozen=True):
    """A further speech backend of a voice; ``engine_voice`` "" is that of the voice."""

    name: str
    engine_voice: str = ""
    weight: int = DEFAULT_WEIGHT


class VoiceTable(Table, frozen=True):
    """A ``[[voices]]`` table. ``weight`` None is ``DEFAULT_WEIGHT``."""

    id: str
    engine_voice: str
    language: str = "en"
    engine: str = EMBEDDED_ENGINE
    neural_voice: str = ""
    mixed_into_clones: bool = False
    weight: int | None = None
    servers: list[VoiceServerTable] = msgspec.field(default_factory=list)
    enabled: bool = True
    gender: str | None = None
    accent: str | None = None
    age: str | None = None
    style: str | None = None
    """Without a label, or with null, what is stored stays: people fill labels in in the admin."""


class SpeechBackendTable(Table, frozen=True):
    """A ``[[speech_backends]]`` table: the columns of ``speech.models.SpeechBackend``."""

    name: str
    base_url: str
    model: str
    protocol: Literal["openai"] = "openai"
    api_key_env: str = ""
    delivery: str = "file"
    sample_rate: int = 24_000
    word_times: str = "none"
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


@transaction.atomic
def load_voices(tables: SpeechTables) -> list[str]:
    """Apply ``tables`` and return a description of each change, in order.

    Raises ``CatalogFileError``, which names the table and key; nothing is changed then.
    """
    lock(VOICES)
    places = [(f"speech_backends[{n}]", table) for n, table in enumerate(tables.speech_backends)]
    # At most one backend may serve the clones, so the backends that stop doing so come first.
    places.sort(key=lambda place: place[1].serves_clones)
    changes = [change for where, table in places for change in _backend(table, where)]
    for index, voice in enumerate(tables.voices):
        changes += _voice(voice, f"voices[{index}]")
    return changes


def _backend(table: SpeechBackendTable, where: str) -> list[str]:
    if table.name == EMBEDDED_ENGINE:
        raise CatalogFileError(f"{where}.name", f"{table.name} is the embedded engine's name.")
    values = {name: getattr(table, name) for name in table.__struct_fields__ if name != "protocol"}
    row = SpeechBackend.objects.filter(name=table.name).first()
    if row is None:
        save(SpeechBackend(**values), where, {})
        return [f"created speech backend {table.name}"]
    return update(row, f"speech backend {row}", values, where, {})


def _voice(table: VoiceTable, where: str) -> list[str]:
    backend = _backend_of(table, where)
    neural = backend is None and table.engine == NEURAL_ENGINE
    values: dict[str, Any] = {
        "language": table.language,
        "backend": backend,
        "embedded_engine": EmbeddedEngine.KOKORO if neural else EmbeddedEngine.ESPEAK,
        "engine_voice": table.engine_voice,
        "neural_voice": table.neural_voice,
        "mixed_into_clones": table.mixed_into_clones,
        "weight": table.weight,
        "enabled": table.enabled,
        **{name: label for name in LABELS if (label := getattr(table, name)) is not None},
    }
    keys = {"backend": "engine", "embedded_engine": "engine"}
    row = Voice.objects.filter(pk=table.id).select_related("backend").first()
    changes: list[str] = []
    # A backend that moves to the first place was a further one before.
    wanted = _further(table, where)
    if row is not None:
        changes += _without_servers(row, wanted)
        changes += update(row, f"voice {row}", values, where, keys)
    else:
        row = Voice(id=table.id, **values)
        save(row, where, keys)
        changes.append(f"created voice {table.id}")
    return changes + _with_servers(row, wanted, where)


def _further(table: VoiceTable, where: str) -> list[tuple[SpeechBackend, VoiceServerTable]]:
    """The further servers of a voice, by their backends."""
    require_unique([each.name for each in table.servers], f"{where}.servers", "name")
    found = []
    for index, each in enumerate(table.servers):
        backend = SpeechBackend.objects.filter(name=each.name).first()
        if backend is None:
            place = f"{where}.servers[{index}].name"
            raise CatalogFileError(place, f"There is no speech backend {each.name}.")
        found.append((backend, each))
    return found


def _without_servers(
    row: Voice, wanted: Sequence[tuple[SpeechBackend, VoiceServerTable]]
) -> list[str]:
    """Remove the further servers that are not ``wanted``."""
    kept = [backend.pk for backend, _ in wanted]
    changes = []
    for gone in row.servers.exclude(backend__in=kept).select_related("backend"):
        changes.append(f"voice {row}: no longer on {gone.backend}")
        gone.delete()
    return changes


def _with_servers(
    row: Voice, wanted: Sequence[tuple[SpeechBackend, VoiceServerTable]], where: str
) -> list[str]:
    """Add and change the further servers that are ``wanted``."""
    changes: list[str] = []
    for index, (backend, table) in enumerate(wanted):
        place = f"{where}.servers[{index}]"
        values = {"engine_voice": table.engine_voice, "weight": table.weight}
        server = row.servers.filter(backend=backend).first()
        if server is None:
            server = VoiceServer(voice=row, backend=backend, **values)
            save(server, place, {"backend": "name"})
            changes.append(f"voice {row}: also on {backend}")
        else:
            changes += update(
                server, f"voice {row} on {backend}", values, place, {"backend": "name"}
            )
    return changes


def _backend_of(table: VoiceTable, where: str) -> SpeechBackend | None:
    if table.engine == EMBEDDED_ENGINE:
        return None
    backend = SpeechBackend.objects.filter(name=table.engine).first()
    if backend is None and table.engine != NEURAL_ENGINE:
        raise CatalogFileError(
            f"{where}.engine",
            f"There is no speech backend {table.engine}. Name one, or {EMBEDDED_ENGINE!r}.",
        )
    return backend
