"""The whole HTTP/1.1 table."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.http import connections, fields, framing, request_lines
from tests.conformance.http.case import After, Case
from tests.svc_project.serving.test_smuggling import AMBIGUOUS

_OTHERWISE = {"a tunnel"}
"""Entries of the suite's own table that ``connections`` has in more detail."""


def cases() -> Iterator[Case]:
    """Yield every case, those of the suite's own table of ambiguous requests among them."""
    yield from request_lines.cases()
    yield from fields.cases()
    yield from framing.cases()
    yield from connections.cases()
    for name, sent in AMBIGUOUS.items():
        if name not in _OTHERWISE:
            yield Case(
                f"ambiguous: {name}",
                "RFC 9112, 11.2",
                sent,
                ("400",),
                After.CLOSED,
                # They have no key, and the path is one of chat.
                early="401|404",
            )
