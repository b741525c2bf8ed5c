"""Makes a string for one member of a structured answer, by its format, name and lengths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simulators.chat.answers.hints import Hints

_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-\d{2}-\d{2}", "2026-01-31"),
    "date-time": (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", "2026-01-31T09:30:00Z"),
    "time": (r"\d{2}:\d{2}:\d{2}Z", "09:30:00Z"),
    "duration": (r"P\d+D", "P1D"),
    "email": (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "someone@example.com"),
    "hostname": (r"(?!)", "example.com"),
    "ipv4": (r"\d+\.\d+\.\d+\.\d+", "192.0.2.1"),
    "ipv6": (r"(?!)", "2001:db8::1"),
    "uri": (r"https?://[^\s\"'<>]+", "https://example.com/"),
    "uuid": (
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "6f2c1d7e-5b0a-4c8e-9d3f-2a1b0c9d8e7f",
    ),
}
"""For each format: its pattern in a text, and a default value."""

_LONGEST = 100_000
_WHOLE_TEXT = {"query", "question", "text", "message", "prompt", "content", "input", "search"}
_PROPER_NAME = {
    "address", "author", "city", "company", "country", "customer", "destination", "location",
    "name", "origin", "person", "place", "recipient", "region", "state", "title", "town", "user",
}  # fmt: skip


def string_value(schema: Mapping[str, Any], name: str, hints: Hints) -> str:
    """Make a string for the member ``name`` with the ``format`` and the lengths of ``schema``."""
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        pattern, usual = _FORMATS[form]
        found = re.search(pattern, hints.text)
        return found[0] if found else usual
    value = _by_name(name, hints)
    least = min(schema.get("minLength", 0), _LONGEST)
    if len(value) < least:
        value += "-" * (least - len(value))
    return value[: schema.get("maxLength", len(value))]


def _by_name(name: str, hints: Hints) -> str:
    last = re.split(r"[_\W]+|(?<=[a-z])(?=[A-Z])", name)[-1].lower()
    if last in _PROPER_NAME and (found := hints.names or hints.quoted):
        return found[0]
    if hints.quoted:
        return hints.quoted[0]
    if last in _WHOLE_TEXT and hints.text:
        return hints.text[:200]
    if found := hints.names:
        return found[0]
    return f"example {name}".strip()
