"""Local references: ``#/$defs/<name>``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

_PREFIX = "#/$defs/"
_BAD_ESCAPE = re.compile(r"~(?![01])|%(?![0-9A-Fa-f]{2})")

_LONGEST = 8192
"""Longest reference in characters: enough for several hundred percent-encoded ones of any script."""


class RefReader:
    """Parses the references of one document, each distinct text once."""

    def __init__(self) -> None:
        self._names: dict[str, str | None] = {}

    def name(self, ref: Any) -> str | None:
        """Return ``def_name`` of ``ref``, cached."""
        if not isinstance(ref, str):
            return None
        if ref not in self._names:
            self._names[ref] = def_name(ref)
        return self._names[ref]


def def_name(ref: Any) -> str | None:
    """Return the name that ``ref`` points at, with escapes decoded; None for any other reference,
    and for one longer than ``_LONGEST``.

    A fragment is percent-encoded UTF-8 around a JSON pointer (RFC 6901, section 6).
    """
    if not isinstance(ref, str) or len(ref) > _LONGEST or _BAD_ESCAPE.search(ref):
        return None
    try:
        fragment = unquote(ref, errors="strict")
    except UnicodeDecodeError:
        return None
    name = fragment.removeprefix(_PREFIX)
    # Percent-decoding can yield a stray tilde, so the escapes are checked again.
    if not ref.startswith("#") or name == fragment or "/" in name or re.search("~(?![01])", name):
        return None
    return name.replace("~1", "/").replace("~0", "~")
