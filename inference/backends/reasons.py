"""Reads why a model server refused a request from its error body, in any server's dialect.

Reasons often say what to change ("maximum context length is ..."), so one short line of plain text
is passed on. Addresses and paths are cut out of it, because they are internal; a stack trace is
dropped.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_LONGEST: Final = 300
_MOST_DETAILS: Final = 3
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,19}://[^\s\"'<>()\[\]{}]*")
_IP_ADDRESS: Final = re.compile(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?(?![\w.])")
_OF_A_REQUEST: Final = r"(?!/(?:v[0-9]+|messages|tools|response_format|properties)/)"
_PATH: Final = re.compile(
    _OF_A_REQUEST + r"(?<![\w.:#/\\])(?:[A-Za-z]:\\|~?/)(?:[\w.@+-]+[/\\])+[\w.@+-]*\w"
)
"""An absolute file path of two parts or more, but not a path of the API or a JSON pointer."""
_CUT: Final = "[address]"
_CUT_PATH: Final = "[path]"


def reason_in(body: bytes, model: str) -> str | None:
    """Return the reason as one line of plain text, or None when ``body`` has none to show.

    ``model`` is the backend's own name for the model, which is replaced.
    """
    try:
        said = _message(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    text = "".join(character if character.isprintable() else " " for character in said)
    text = " ".join(text.split())
    if not text or "Traceback" in text or 'File "' in text:
        return None
    text = _IP_ADDRESS.sub(_CUT, _URL.sub(_cut, text.replace(model, "the model")))
    text = _PATH.sub(_CUT_PATH, text)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + "…"


def _cut(url: re.Match[str]) -> str:
    """Cut an address; the punctuation after it belongs to the sentence and stays."""
    address = url[0]
    return _CUT + address[len(address.rstrip(".,;:!?")) :]


def _message(body: Any) -> str:
    """Return the message of ``body``: under ``error`` (an object or a string), at the top level, or
    under ``detail`` as FastAPI writes it (a string, an object, or a list of failed fields)."""
    if isinstance(body, str):
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, map(_field, body[:_MOST_DETAILS])))
    if isinstance(body, dict):
        for name in ("error", "message", "detail", "msg"):
            if said := _message(body.get(name)):
                return said
    return ""


def _field(failed: Any) -> str:
    """Format one failed field as pydantic reports it: its location, and what is wrong."""
    said = _message(failed)
    place = failed.get("loc") if isinstance(failed, dict) else None
    names = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
    return f"{'.'.join(names)}: {said}" if said and names else said
