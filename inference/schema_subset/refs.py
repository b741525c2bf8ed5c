"""Local references: ``#/$defs/<name>``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

_PREFIX = "#/$defs/"
_BAD_ESCAPE = re.compile(r"~(?![01])|%(?![0-9A-Fa-f]{2})")


def def_name(ref: Any) -> str | None:
    """The name that ``ref`` points at, its escapes decoded; None for any other reference.

    A fragment is percent-encoded UTF-8 around a JSON pointer (RFC 6901, section 6).
    """
    if not isinstance(ref, str) or _BAD_ESCAPE.search(ref):
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


def endless_defs(defs: dict[str, Any]) -> frozenset[str]:
    """The definitions that lead by ``$ref`` and ``anyOf`` alone into a circle.

    Such a circle never reaches a schema, and a model server that follows it never ends. Recursion
    through ``properties`` or ``items`` is another matter: each turn consumes a piece of the answer.
    """
    leads_to = {name: {*_direct(body)} & defs.keys() for name, body in defs.items()}
    led_by: dict[str, list[str]] = {}
    for name, targets in leads_to.items():
        for target in targets:
            led_by.setdefault(target, []).append(name)
    ended = [name for name, targets in leads_to.items() if not targets]
    for name in ended:
        for source in led_by.get(name, ()):
            leads_to[source].discard(name)
            if not leads_to[source]:
                ended.append(source)
    return frozenset(name for name, targets in leads_to.items() if targets)


def _direct(body: Any) -> Iterator[str]:
    """Names that ``body`` refers to without a property or an item in between."""
    stack = [body]
    while stack:
        schema = stack.pop()
        if not isinstance(schema, dict):
            continue
        name = def_name(schema.get("$ref"))
        if name is not None:
            yield name
        branches = schema.get("anyOf")
        if isinstance(branches, list):
            stack.extend(branches)
