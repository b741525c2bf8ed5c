"""The stored voices and speech backends as tables of a catalog file: loading them changes nothing."""

from __future__ import annotations

from speech.models import LABELS, SpeechBackend, Voice
from speech.voices.load import SpeechBackendTable, SpeechTables, VoiceServerTable, VoiceTable

_COLUMNS = [name for name in SpeechBackendTable.__struct_fields__ if name != "protocol"]


def stored_speech_tables() -> SpeechTables:
    """Every voice by id and every speech backend by name; its key is named by its variable."""
    return SpeechTables(
        voices=[
            VoiceTable(
                id=row.id,
                engine_voice=row.engine_voice,
                language=row.language,
                engine=row.embedded_engine if row.backend is None else row.backend.name,
                neural_voice=row.neural_voice,
                mixed_into_clones=row.mixed_into_clones,
                weight=row.weight,
                servers=[
                    VoiceServerTable(
                        name=each.backend.name, engine_voice=each.engine_voice, weight=each.weight
                    )
                    for each in row.servers.all()
                ],
                enabled=row.enabled,
                **{name: getattr(row, name) for name in LABELS},
            )
            for row in Voice.objects.select_related("backend")
            .prefetch_related("servers__backend")
            .order_by("id")
        ],
        speech_backends=[
            SpeechBackendTable(**{name: getattr(row, name) for name in _COLUMNS})
            for row in SpeechBackend.objects.order_by("name")
        ],
    )
