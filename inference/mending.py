"""Small departures from the convention that servers make and that leave no doubt what is meant.

Only an answer that was not read as it came is looked at here, so a good one costs nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def mended(answer: Any) -> Any:
    """``answer``, a decoded chunk or whole answer, changed in place where it departs.

    ``arguments`` as an object or null become the JSON text of the object and an empty text; a
    ``delta`` that is null becomes an empty one.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if "delta" in choice and choice["delta"] is None:
            choice["delta"] = {}
        for name in ("delta", "message"):
            _mend_calls(choice.get(name))
    return answer


def is_flat_error(said: bytes) -> bool:
    """Whether a chunk or whole answer without choices is an error that is not under ``error``.

    vLLM's and SGLang's errors have ``"object": "error"``; llama.cpp's, before September 2025, a
    message and a code.
    """
    try:
        answer = _decode(said)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    if not isinstance(answer, dict):
        return False
    return answer.get("object") == "error" or ("message" in answer and "code" in answer)


def _mend_calls(said: Any) -> None:
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
