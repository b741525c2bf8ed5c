"""The body of ``POST /v1/voices`` and the clone that answers it (speech contract, Voice clone)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from speech.clones.names import UnusableName, clone_name, name_key
from speech.wav import Clip, UnusableClip, clip_from_base64
from svc_project.lib.errors import InvalidField
from svc_project.lib.json_object import parse_object

LARGEST_BODY: Final = 16_000_000
"""Bytes (speech contract, Limits)."""

_EXAMPLE = '{"name": "...", "audio_b64": "...", "consent": true}'
_KINDS: Final = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


@dataclass(frozen=True, slots=True, repr=False)
class CloneRequest:
    """A checked body; ``clip`` is decoded already."""

    name: str
    name_key: str
    clip: Clip


class CloneObject(msgspec.Struct, frozen=True):
    """The voice clone as it is served."""

    id: str
    object: Literal["voice"]
    name: str
    created: int
    owned_by: Literal["user"]
    reference_seconds: float


def read_request(body: bytes) -> CloneRequest:
    """Raises ``InvalidField`` for the first field that is wrong; nothing sent is repeated.

    Takes time of the order of 100 ms for the largest body: call it in a thread.
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
        raise InvalidField(f"'{name}' must be a string, not {_KINDS[type(value)]}.", param=name)
    return value


def _require_consent(fields: dict[str, Any]) -> None:
    if fields.get("consent") is not True:
        raise InvalidField(
            "'consent' must be true: it says that the speaker agrees to have this voice cloned.",
            param="consent",
        )
