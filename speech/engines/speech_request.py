"""The body of a speech request, in the fields that a backend is configured to have.

No field holds what a caller wrote except the text and the instructions: the voice is the one that
the operator named.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import msgspec

from speech.engines import Utterance
from speech.engines.backend_calls import Message
from speech.snapshot import BackendRef

FORMAT_OF_DELIVERY: Final = {"file": "wav", "pcm": "pcm", "sse": "pcm"}
"""What is asked for in ``format_field``."""


def speech_request(backend: BackendRef, utterance: Utterance, speaker: dict[str, str]) -> Message:
    """The request for ``utterance``; ``speaker`` are the fields that say who speaks.

    A speed or instructions that the caller gave replace those of ``extra_fields``, which never
    replace the text, the speaker or the model.
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
    """A voice that the backend has of its own."""
    return {backend.voice_field: utterance.engine_voice}


def uploaded_speaker(backend: BackendRef, upload_name: str) -> dict[str, str]:
    """A voice that was uploaded."""
    return {backend.voice_field: upload_name}


def inline_speaker(backend: BackendRef, clip: bytes) -> dict[str, str]:
    """A voice that is given by its reference clip, a WAV file."""
    prefix = "data:audio/wav;base64," if backend.clone_as_data_url else ""
    return {backend.clone_field: prefix + b64encode(clip).decode("ascii")}
