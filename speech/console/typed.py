"""What was typed on the page of voices, checked by the rules of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from speech.audio.encoding import AudioFormat
from speech.requests.http_request import input_named
from speech.synthesis.script import metered_characters
from speech.wire import LONGEST_INPUT, LONGEST_SESSION, SpeechRequest
from svc_project.lib.asgi.json_object import parse_object
from svc_project.lib.errors import InvalidField

_EXAMPLE: Final = '{"voice": "...", "input": "...", "by_socket": false}'


@dataclass(frozen=True, slots=True)
class Typed:
    """A valid request. ``characters`` are those that are metered."""

    body: Mapping[str, Any]
    """The fields of ``POST /v1/audio/speech``, with a ``response_format``."""
    by_socket: bool
    characters: int

    @property
    def start(self) -> dict[str, Any]:
        """The first message of a WebSocket session."""
        others = {name: value for name, value in self.body.items() if name != "input"}
        return {"type": "start", **others}

    def pieces(self, longest: int) -> list[str]:
        """The text in pieces of at most ``longest`` code points."""
        text: str = self.body["input"]
        return [text[at : at + longest] for at in range(0, len(text), longest)]


def read_typed(body: bytes) -> Typed:
    """Parse ``body``: the fields of ``POST /v1/audio/speech``, and ``by_socket``.

    Raises ``InvalidField`` for the first wrong field.
    """
    fields = parse_object(body, _EXAMPLE)
    by_socket = fields.pop("by_socket", False) is True
    if fields.get("response_format") is None:
        fields["response_format"] = AudioFormat.WAV.value
    text = fields.get("input")
    if by_socket and isinstance(text, str):
        if len(text) > LONGEST_SESSION:
            raise InvalidField(
                f"'input' has {len(text)} characters, and a session takes at most "
                f"{LONGEST_SESSION}. Send the rest in another one.",
                param="input",
            )
        # The messages of a session have the same rules as a body, and each a part of the text.
        _check({**fields, "input": text.strip()[:LONGEST_INPUT]})
    else:
        _check(fields)
    with input_named():
        characters = metered_characters(fields["input"])
    return Typed(fields, by_socket, characters)


def _check(fields: Mapping[str, Any]) -> None:
    SpeechRequest.from_body(msgspec.json.encode(fields))
