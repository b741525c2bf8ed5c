"""From the bytes of a chat request's body to its top-level fields and the model that it names."""

from __future__ import annotations

from typing import Any

import msgspec

from inference.wire import wording
from svc_project.lib.json_object import MAX_NESTING, parse_object

__all__ = ["MAX_NESTING", "glimpse_model", "model_of", "parse_body"]

_EXAMPLE = '{"model": ..., "messages": ...}'


def parse_body(body: bytes) -> dict[str, Any]:
    """The fields of the body. Raises ``InvalidField`` for what is no JSON object (``json_object``)."""
    return parse_object(body, _EXAMPLE)


class _Glimpse(msgspec.Struct):
    model: str = ""


_glimpse = msgspec.json.Decoder(_Glimpse).decode


def glimpse_model(body: bytes) -> str:
    """The model that ``body`` asks for, or an empty text when it cannot be told.

    Everything else is passed over unread, which takes a tenth of the time and less.
    """
    try:
        return _glimpse(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def model_of(fields: dict[str, Any]) -> str:
    """The model identifier that the caller asks for.

    Raises ``InvalidField`` for ``model`` when it is absent or is not a non-empty string.
    """
    model = fields.get("model")
    if model is None:
        raise wording.missing("model")
    if type(model) is not str or not model:
        raise wording.wrong("model", type(model).__name__)
    return model
