"""Local references: ``#/$defs/<name>``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

_PREFIX = "#/$defs/"
_BAD_ESCAPE = re.compile(r"~(?![01])|%(?![0-9A-Fa-f]{2})")

_LONGEST = 8192
"""Characters of a reference that is read, several hundred characters of any script among them."""


class RefReader:
    """Reads the references of one document, each distinct text once."""

    def __init__(self) -> None:
        self._names: dict[str, str | None] = {}

    def name(self, ref: Any) -> str | None:
        """As ``def_name``."""
        if not isinstance(ref, str):
            return None
        if ref not in self._names:
            self._names[ref] = def_name(ref)
        return self._names[ref]


def def_name(ref: Any) -> str | None:
    """The name that ``ref`` points at, its escapes decoded; None for any other reference, and for
    one that is absurdly long.

    A fragment is percent-encoded UTF-8 around a JSON pointer (RFC 6901, section 6).
    """
    if not isinstance(ref, str) or len(ref) > _LONGEST or _BAD_ESCAPE.search(ref):
        return None
    try:
        fragment = unquote(ref, errors="strict")
    except UnicodeDecodeError:
        return None
    name = fragment.removeprefix(_PREFIX)
    # Percent-encoding can bring in a stray tilde, so the escapes are looked at once more.
    if not ref.startswith("#") or name == fragment or "/" in name or re.search("~(?![01])", name):
        return None
    return name.replace("~1", "/").replace("~0", "~")
