"""The body of a speech request, in the fields that are configured for a backend.

Only the text and the instructions hold what a client wrote: the operator names the voice.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import msgspec

from speech.engines import Utterance
from speech.engines.http.backend import BackendRef
from speech.engines.http.client import Message

FORMAT_OF_DELIVERY: Final = {"file": "wav", "pcm": "pcm", "sse": "pcm"}
"""The value of ``format_field``."""


def speech_request(backend: BackendRef, utterance: Utterance, speaker: dict[str, str]) -> Message:
    """The request for ``utterance``; ``speaker`` are the fields that name the voice.

    The client's speed and instructions replace those of ``extra_fields``, which never replace the
    text, the voice or the model.
    """
    fields: dict[str, Any] = {**backend.extra_fields}
    if backend.format_field:
        fields[backend.format_field] = FORMAT_OF_DELIVERY[backend.delivery]
    if backend.language_field:
        fields[backend.language_field] = utterance.language
    if backend.speed_field and utterance.rate != 1.0:
        fields[backend.speed_field] = utterance.rate
    if backend.instructions_field and utterance.instructions:
        fields[backend.instructions_field] = utterance.instructions
    fields |= {"model": backend.model, **speaker, backend.text_field: utterance.text}
    return Message(backend.speech_path, msgspec.json.encode(fields))


def preset_speaker(backend: BackendRef, utterance: Utterance) -> dict[str, str]:
    """The fields of a voice that the backend brings along."""
    return {backend.voice_field: utterance.engine_voice}


def uploaded_speaker(backend: BackendRef, upload_name: str) -> dict[str, str]:
    """The fields of an uploaded voice."""
    return {backend.voice_field: upload_name}


def inline_speaker(backend: BackendRef, clip: bytes) -> dict[str, str]:
    """The fields of a voice given by its reference clip, a WAV file."""
    prefix = "data:audio/wav;base64," if backend.clone_as_data_url else ""
    return {backend.clone_field: prefix + b64encode(clip).decode("ascii")}
