"""Applies the speech tables of a catalog file to the database, in one transaction.

Rows that the file does not name are not changed.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from accounts.changes import VOICES, changed
from speech.models import EmbeddedEngine, SpeechBackend, Voice
from speech.voices.file import (
    EMBEDDED_ENGINE,
    NEURAL_ENGINE,
    SpeechBackendTable,
    SpeechTables,
    VoiceTable,
)
from svc_project.lib.catalog_tables import CatalogFileError, save, update


@transaction.atomic
def load_voices(tables: SpeechTables) -> list[str]:
    """Apply ``tables`` and return a description of each change, in order.

    Raises ``CatalogFileError``, which names the table and key; nothing is changed then.
    """
    # The stamp's row lock serializes concurrent loads.
    changed(VOICES)
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
        "enabled": table.enabled,
    }
    keys = {"backend": "engine", "embedded_engine": "engine"}
    row = Voice.objects.filter(pk=table.id).select_related("backend").first()
    if row is None:
        save(Voice(id=table.id, **values), where, keys)
        return [f"created voice {table.id}"]
    return update(row, f"voice {row}", values, where, keys)


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
