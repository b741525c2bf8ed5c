"""Answers that a gateway with the simulator really gave, shown beside the reference and in the guides.

``recorded.json`` is written by ``python -m tests.support.pages.record``, and a test compares its
shapes with what is answered now.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from svc_project.reference.examples import with_placeholders

FILE: Final = Path(__file__).with_name("recorded.json")


class Recording(msgspec.Struct, frozen=True):
    """One answer. ``operation`` is empty where the reference does not show it; ``body`` is as it came."""

    name: str
    operation: str
    title: str
    status: int
    headers: dict[str, str]
    """Those that belong to what is shown."""
    body: str

    @property
    def text(self) -> str:
        """The answer as people read it: headers first, where some are shown."""
        head = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        return f"{head}\n{self.body}" if head else self.body


@lru_cache(maxsize=1)
def recordings() -> dict[str, Recording]:
    """Every recording by its name."""
    found = msgspec.json.decode(FILE.read_bytes(), type=list[Recording])
    return {each.name: each for each in found}


@lru_cache(maxsize=1)
def by_operation() -> dict[str, list[Recording]]:
    """The recordings of each operation of the reference, with placeholders."""
    found: dict[str, list[Recording]] = {}
    for each in recordings().values():
        shown = structs.replace(each, body=with_placeholders(each.body))
        found.setdefault(each.operation, []).append(shown)
    return found
