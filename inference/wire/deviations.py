"""Normalizes small deviations of model servers from the convention whose meaning is clear.

Only an answer that failed to parse is normalized, so a valid one costs nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def normalized(answer: Any) -> Any:
    """Normalize ``answer``, a decoded chunk or whole answer, in place, and return it.

    ``arguments`` that are an object become its JSON text, null becomes an empty string; a ``delta``
    that is null becomes an empty object.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if "delta" in choice and choice["delta"] is None:
            choice["delta"] = {}
        for name in ("delta", "message"):
            _normalize_calls(choice.get(name))
    return answer


def is_flat_error(said: bytes) -> bool:
    """Whether a chunk or whole answer without choices is an error outside an ``error`` member.

    vLLM's and SGLang's errors have ``"object": "error"``; llama.cpp's, before September 2025, have
    a message and a code.
    """
    try:
        answer = _decode(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    if not isinstance(answer, dict):
        return False
    return answer.get("object") == "error" or ("message" in answer and "code" in answer)


def _normalize_calls(said: Any) -> None:
    calls = said.get("tool_calls") if isinstance(said, dict) else None
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if arguments is None:
            function["arguments"] = ""
        elif isinstance(arguments, dict):
            function["arguments"] = _encode(arguments).decode()
