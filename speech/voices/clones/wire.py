"""The request and the answer of ``POST /v1/voices`` (speech contract, Voice clone)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from core.asgi.json_object import kind_of, parse_object
from core.errors import InvalidField
from speech.audio.wav import Clip, UnusableClip, clip_from_base64
from speech.names import UnusableName, clone_name, name_key

LARGEST_BODY: Final = 16_000_000
"""Bytes (speech contract, Limits)."""

_EXAMPLE = '{"name": "...", "audio_b64": "...", "consent": true}'


@dataclass(frozen=True, slots=True, repr=False)
class CloneRequest:
    """A checked body with the decoded ``clip``."""

    name: str
    name_key: str
    clip: Clip


class CloneObject(msgspec.Struct, frozen=True):
    """A voice clone as clients see it."""

    id: str
    object: Literal["voice"]
    name: str
    created: int
    owned_by: Literal["user"]
    reference_seconds: float


def read_request(body: bytes) -> CloneRequest:
    """Parse a body. Raises ``InvalidField``, which quotes nothing, for the first wrong field.

    It takes about 100 ms for the largest body: call it in a thread.
    """
    fields = parse_object(body, _EXAMPLE)
    text = _string(fields, "name", "what to call the voice")
    audio = _string(fields, "audio_b64", "a WAV file in base64")
    _require_consent(fields)
    try:
        name = clone_name(text)
    except UnusableName as error:
        raise InvalidField(f"'name' cannot be used: {error.reason}", param="name") from None
    try:
        clip = clip_from_base64(audio)
    except UnusableClip as error:
        raise InvalidField(
            f"'audio_b64' cannot be used: {error.reason}", param="audio_b64"
        ) from None
    return CloneRequest(name, name_key(name), clip)


def _string(fields: dict[str, Any], name: str, meaning: str) -> str:
    value = fields.get(name)
    if value is None:
        raise InvalidField(f"'{name}' is required: send {meaning}, as a string.", param=name)
    if type(value) is not str:
        raise InvalidField(f"'{name}' must be a string, not {kind_of(value)}.", param=name)
    return value


def _require_consent(fields: dict[str, Any]) -> None:
    if fields.get("consent") is not True:
        raise InvalidField(
            "'consent' must be true: it says that the speaker agrees to have this voice cloned.",
            param="consent",
        )
