"""The answers that the docs show are those of this gateway: their shapes are compared with new ones."""

from __future__ import annotations

import json
import os
from typing import Any

from svc_project.openapi import DOCUMENTS
from svc_project.reference.recordings import Recording, recordings
from tests.support.live import Gateway
from tests.support.pages.record import WRITES
from tests.support.pages.recordings import guides_with, record, write


def fits(recorded: Any, now: Any) -> bool:
    """Whether two JSON values have the same members and types; null and no limit have any type."""
    if isinstance(recorded, dict):
        return (
            isinstance(now, dict)
            and recorded.keys() == now.keys()
            and all(fits(value, now[name]) for name, value in recorded.items())
        )
    if isinstance(recorded, list):
        return isinstance(now, list) and all(
            any(fits(one, each) for each in now) for one in recorded
        )
    return not {None, "unlimited"}.isdisjoint((recorded, now)) or type(recorded) is type(now)


def values(text: str) -> list[Any]:
    """The JSON of an answer: a whole one, or that of each line that has some."""
    try:
        return [json.loads(text)]
    except ValueError:
        found = [line.partition("{") for line in text.splitlines()]
        return [json.loads(brace + rest) for _, brace, rest in found if brace] or [type(text)]


def differs(recorded: Recording, now: Recording) -> bool:
    before, after = values(recorded.body), values(now.body)
    return (
        recorded.status != now.status
        or recorded.headers.keys() != now.headers.keys()
        or len(before) != len(after)
        or not all(map(fits, before, after))
    )


def test_the_recorded_answers_are_those_of_today(gateway: Gateway) -> None:
    """Where it fails: ``python -m tests.support.pages.record``."""
    found = record(gateway)
    if os.environ.get(WRITES):
        write(found)
        return
    shown = recordings()

    assert [each.name for each in found] == list(shown)
    assert [each.name for each in found if differs(shown[each.name], each)] == []


def test_every_operation_has_a_recorded_answer_and_guides_show_recorded_ones() -> None:
    beside = {each.operation for each in recordings().values()}
    operations = {
        source["operationId"]
        for document in DOCUMENTS.values()
        for methods in document()["paths"].values()
        for source in methods.values()
    }

    assert operations - beside == set()
    assert [
        path.name for path, text in guides_with(recordings()).items() if text != path.read_text()
    ] == []
