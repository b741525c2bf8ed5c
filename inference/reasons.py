"""Why a model server refused a request, read from its error body in whatever dialect it has.

Reasons often say what to mend ("maximum context length is ..."), so one short line of plain text is
passed on. Addresses and paths in it, which are none of the caller's business, are cut out; a trace is
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
"""An absolute path of two parts or more on a disk, and no path of the API or into a body."""
_CUT: Final = "[address]"
_CUT_PATH: Final = "[path]"


def reason_in(body: bytes, model: str) -> str | None:
    """One line of plain text, or None where ``body`` has none that is fit to show.

    ``model`` is the backend's own name for the model, which is not shown.
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
    """The full stop that ends the sentence is not part of the address."""
    address = url[0]
    return _CUT + address[len(address.rstrip(".,;:!?")) :]


def _message(body: Any) -> str:
    """The message of ``body``: under ``error`` (an object or a string), flat, or, from FastAPI and
    what is built on it, under ``detail`` (a string, an object, or a list of failed fields)."""
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
    """One failed field as pydantic reports it: where it is, and what is wrong."""
    said = _message(failed)
    place = failed.get("loc") if isinstance(failed, dict) else None
    names = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
    return f"{'.'.join(names)}: {said}" if said and names else said
