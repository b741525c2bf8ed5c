"""The requests of ``benchmarks.answers`` cover every endpoint of both OpenAPI documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.answers.cases import Case
from benchmarks.answers.chat_cases import chat_cases
from benchmarks.answers.other_cases import catalog_cases, clone_cases, speech_cases, usage_cases

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs/api"
CASES: list[Case] = [
    *chat_cases(),
    *catalog_cases(),
    *usage_cases(),
    *speech_cases(),
    *clone_cases(b""),
]


def test_no_two_requests_have_the_same_name() -> None:
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("surface", ["inference", "speech"])
def test_every_documented_endpoint_is_requested(surface: str) -> None:
    document = json.loads((DOCUMENTS / f"openapi-{surface}.json").read_text(encoding="utf-8"))
    requested = {
        (case.method, case.path.partition("?")[0]) for case in CASES if case.surface == surface
    }
    missing = [
        (method, path)
        for path, item in document["paths"].items()
        for method in ("GET", "POST", "DELETE")
        if method.lower() in item
        and not any(
            method == used and re.fullmatch(re.sub(r"\\?{\w+\\?}", ".+", path), at)
            for used, at in requested
        )
    ]
    assert missing == []
