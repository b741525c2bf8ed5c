"""What each field of voices and clones means (speech contract, "Resources and their fields")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_VOICE_ENTRY: Final = {
    "id": "Send it as `voice`.",
    "created": "When the voice was added, in seconds since 1970.",
    "owned_by": "`user` for your account's clones, else the name of this service.",
}
MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "VoiceList": {
        "object": "Always `list`.",
        "data": "Global voices by id, then your account's clones, oldest first.",
    },
    "VoiceEntry": {**_VOICE_ENTRY, "object": "Always `model`."},
    "CloneObject": {
        **_VOICE_ENTRY,
        "object": "Always `voice`.",
        "name": "The name as it was stored.",
        "reference_seconds": "The length of the clip, to the millisecond.",
    },
    "Deletion": {
        "id": "The id of the clone, which is an unknown voice from now on.",
        "object": "Always `voice`.",
        "deleted": "Always true.",
    },
    "PronunciationList": {
        "object": "Always `list`.",
        "data": "Your account's pronunciations by word, 500 at most.",
    },
    "PronunciationObject": {
        "id": "Names it in `DELETE /v1/pronunciations/{id}`.",
        "object": "Always `pronunciation`.",
        "word": "The word, or several, as texts have it.",
        "pronunciation": "What is spoken for it: plain words, or IPA.",
        "alphabet": "`respelling` for every voice, `ipa` for embedded voices alone.",
        "language": "The language of the voices that speak it so; null for all.",
        "case_sensitive": "Whether it holds only where capitals stand as in `word`.",
        "created": "When it was first added, in seconds since 1970.",
    },
    "PronunciationDeletion": {
        "id": "The id of what is spoken as it is written from now on.",
        "object": "Always `pronunciation`.",
        "deleted": "Always true.",
    },
    "NamedVoices": {"voices": "The voices of `GET /v1/models`, clones by their names."},
    "NamedVoice": {
        "id": "Send it as `voice`.",
        "name": "The name for people.",
        "language": "The language that the voice speaks: `en` or `hi`.",
    },
    "NamedModels": {"models": "One entry, because `model` is ignored."},
    "NamedModel": {"id": "Any name works as `model`.", "name": "The name for people."},
}
