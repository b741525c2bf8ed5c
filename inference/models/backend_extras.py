"""Checks the headers and body fields that an operator adds to each request to a backend."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from django.core.exceptions import ValidationError

from inference.wire import ChatRequest

MOST_HEADERS: Final = 20
LONGEST_HEADER: Final = 1000
LARGEST_FIELDS: Final = 16_384
"""Bytes of JSON."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_FRAMING: Final = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_SET_ELSEWHERE: Final = {
    "timings_per_token": "running_usage",
    "max_tokens": "output_cap_field",
    "max_completion_tokens": "output_cap_field",
}
_MODELLED: Final = frozenset(ChatRequest.__struct_fields__)


def check_headers(headers: object) -> dict[str, str]:
    """Check ``headers`` and return them; None becomes an empty table.

    Raises ``ValidationError`` for anything but a table of strings, for a name or value that HTTP
    does not allow, and for headers that the gateway itself sets.
    """
    table = _table(headers)
    if len(table) > MOST_HEADERS:
        raise ValidationError(f"Give at most {MOST_HEADERS} headers.")
    if len({name.lower() for name in table}) < len(table):
        raise ValidationError("A header is given twice; upper and lower case are the same.")
    for name, value in table.items():
        _check_header(name, value)
    return table


def check_extra_fields(fields: object) -> dict[str, Any]:
    """Check ``fields`` and return them; None becomes an empty table.

    Raises ``ValidationError`` for anything but a table, for values without a JSON form, for too
    large a table, and for fields that callers or other settings of the backend set.
    """
    table = _table(fields)
    for name in table:
        if name in _SET_ELSEWHERE:
            raise ValidationError(f"Leave {name} out; {_SET_ELSEWHERE[name]} decides about it.")
        if name in _MODELLED:
            raise ValidationError(f"Leave {name} out; it comes with each request.")
    try:
        # ensure_ascii=False, so that a lone surrogate, which UTF-8 cannot encode, raises here.
        text = json.dumps(table, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValidationError("Use text, finite numbers, true, false, lists and tables.") from None
    if b"\\u0000" in text:
        raise ValidationError("Leave the character U+0000 out.")
    if len(text) > LARGEST_FIELDS:
        raise ValidationError(f"Give at most {LARGEST_FIELDS} bytes of JSON.")
    return table


def _table(given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValidationError("Give a table (a JSON object).")
    return given


def _check_header(name: str, value: object) -> None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        raise ValidationError(f"{name[:100]!r} is not a valid header name.")
    if lowered == "authorization":
        raise ValidationError("Leave Authorization out; api_key_env names the backend's key.")
    if lowered in _FRAMING or lowered.startswith("proxy-"):
        raise ValidationError(f"Leave {name} out; the gateway sets or refuses it itself.")
    if not isinstance(value, str) or len(value) > LONGEST_HEADER or not _VALUE.fullmatch(value):
        raise ValidationError(
            f"Give {name} as 1 to {LONGEST_HEADER} printable ASCII characters, without a blank at "
            "the beginning or end."
        )
