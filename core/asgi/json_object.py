"""Parses the bytes of a JSON object into its top-level fields, for both surfaces.

Every problem is an ``InvalidField`` without ``param``, because no field is known yet. No message
repeats the body.

The decoder reads a megabyte of text in a millisecond, and holds the interpreter until it returns. Two
kinds of value take far longer: objects and arrays, half a microsecond each, and numbers with a
fraction or an exponent, up to seven microseconds each. So both are counted, and bounded, before
or while they are read.
"""

from __future__ import annotations

import codecs
import math
import re
from typing import Any

import msgspec

from core.errors import InvalidField

MAX_NESTING = 64
"""The most levels of nested objects and arrays, the body itself included."""

MOST_VALUES = 50_000
"""The most objects and arrays in a body, and the most numbers with a fraction or an exponent."""

_FEW_BYTES = 16 * 1024
"""A body up to this size holds so few numbers that they need not be counted."""

_decode = msgspec.json.Decoder().decode
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BYTE = re.compile(r"\(byte (\d+)\)$")
_REASONS = {
    "trailing characters": "something follows the JSON object",
    "trailing comma": "there is a comma with nothing after it",
    "utf-16 surrogate": "a \\u escape is half of a surrogate pair",
    "invalid escape": "a string holds an escape that JSON does not have",
    "object keys must be strings": "a name is not in double quotes",
    "invalid number": "a number is not written as JSON writes numbers",
}
"""The decoder's messages and ours. The decoder reports a lone surrogate at the end as truncated."""


_KINDS = {
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    list: "an array",
    dict: "an object",
}


class _Fractions:
    """Reads at most ``most`` numbers with a fraction or an exponent."""

    def __init__(self, most: int) -> None:
        self.left = most

    def read(self, text: str) -> float:
        """Parse one number. Raises ``ValueError``, which the decoder turns into its own error."""
        self.left -= 1
        if self.left < 0:
            raise ValueError
        value = float(text)
        if math.isinf(value):
            raise ValueError
        return value


def parse_object(
    body: bytes, example: str, what: str = "body", *, most_values: int = MOST_VALUES
) -> dict[str, Any]:
    """Parse a JSON object in UTF-8 (RFC 8259). The last value of a repeated name wins.

    Messages show ``example`` and call the bytes ``what`` ("request body"); ``most_values`` replaces
    ``MOST_VALUES``. Raises ``InvalidField`` for anything else, NaN, lone surrogates, numbers out of
    range, too many values and nesting deeper than ``MAX_NESTING`` included.
    """
    containers = body.count(b"{") + body.count(b"[")
    if containers > most_values:
        _check_containers(body, most_values, what)
    fractions = _Fractions(most_values)
    try:
        if len(body) <= _FEW_BYTES:
            fields = _decode(body)
        else:
            fields = msgspec.json.Decoder(float_hook=fractions.read).decode(body)
    except UnicodeDecodeError:
        raise InvalidField(f"The {what} is not valid UTF-8. Send JSON in UTF-8.") from None
    except RecursionError:
        raise _too_deep(what) from None
    except msgspec.ValidationError:
        if fractions.left < 0:
            raise InvalidField(
                f"The {what} holds more than {most_values} numbers with a fraction or an exponent. "
                "Send fewer."
            ) from None
        raise InvalidField(
            f"The {what} holds a number that is out of range. Numbers must fit a 64-bit float."
        ) from None
    except msgspec.DecodeError as error:
        raise _not_json(body, str(error), what) from None
    if type(fields) is not dict:
        raise InvalidField(f"The {what} must be a JSON object, such as {example}.")
    if containers > MAX_NESTING and _nesting(fields) > MAX_NESTING:
        raise _too_deep(what)
    return fields


def _check_containers(body: bytes, most: int, what: str) -> None:
    """Raise ``InvalidField`` when more than ``most`` objects and arrays begin outside of strings."""
    outside = _STRING.sub(b"", body)
    if outside.count(b"{") + outside.count(b"[") > most:
        if b"[" * (MAX_NESTING + 1) in outside:
            raise _too_deep(what)
        raise InvalidField(f"The {what} holds more than {most} objects and arrays. Send fewer.")


def _nesting(fields: dict[str, Any]) -> int:
    """How deep ``fields`` nests, counted level by level so that no depth can exhaust the stack."""
    depth = 0
    level: list[Any] = [fields]
    while level and depth <= MAX_NESTING:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
    return depth


def _too_deep(what: str) -> InvalidField:
    return InvalidField(
        f"The {what} nests deeper than {MAX_NESTING} levels. Flatten its objects and arrays."
    )


def _not_json(body: bytes, message: str, what: str) -> InvalidField:
    if not body.strip():
        return InvalidField(f"The {what} is empty. Send a JSON object.")
    if body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return InvalidField(
            f"The {what} begins with a byte order mark. Send plain UTF-8 without one."
        )
    found = _BYTE.search(message)
    if found is None:
        return InvalidField(
            f"The {what} is not valid JSON: it ends too early, or in half of a surrogate pair."
        )
    byte = int(found[1])
    if body[byte : byte + 3] in (b"NaN", b"Inf"):
        reason = "NaN and Infinity are not JSON numbers"
    else:
        reason = next(
            (ours for theirs, ours in _REASONS.items() if theirs in message),
            "there is a character that JSON does not allow there",
        )
    return InvalidField(f"The {what} is not valid JSON at byte {byte}: {reason}.")


def kind_of(value: Any) -> str:
    """The kind of a JSON value in words, for messages: a string, a number, ..."""
    return _KINDS.get(type(value), "a number")
