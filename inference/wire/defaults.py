"""Defaults of a model: values for fields that a caller left out."""

from __future__ import annotations

from typing import Any, Final

from core.errors import ApiError
from inference.wire.request import ChatRequest

NAMES: Final = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "max_completion_tokens",
)
"""The fields that may have a default: how an answer is sampled and where it ends."""
_INSTEAD: Final = {"max_tokens": "give max_completion_tokens, which holds for both names"}
_ASKED: Final = {"model": "m", "messages": [{"role": "user", "content": "m"}]}


def problem(defaults: dict[str, Any]) -> str | None:
    """Say what is wrong with ``defaults``, by the rules for a caller's values; None when nothing is."""
    for name, value in defaults.items():
        if name not in NAMES:
            advice = _INSTEAD.get(name, f"a default may be {', '.join(NAMES)}")
            return f"Leave {name} out; {advice}."
        if value is None:
            return f"Leave {name} out instead of giving null."
    try:
        ChatRequest.from_fields({**_ASKED, **defaults})
    except ApiError as error:
        return str(error)
    return None


def with_defaults(fields: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return ``fields`` of a request with ``defaults`` for what the caller left out.

    A null counts as left out, as everywhere in a request; ``stop: []`` does not, so that a caller can
    do without. A cap under either name replaces the default cap.
    """
    absent = {name: value for name, value in defaults.items() if fields.get(name) is None}
    if fields.get("max_tokens") is not None:
        absent.pop("max_completion_tokens", None)
    return {**fields, **absent}
