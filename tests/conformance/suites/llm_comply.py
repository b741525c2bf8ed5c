"""llm-comply: answers compared with OpenAI's schema of chat completions."""

from __future__ import annotations

import json

from tests.conformance.place import MODEL, Place
from tests.conformance.results import Outcome, Result
from tests.conformance.suites.programs import BIN, SuiteBroken, run

_OUTCOMES = {"passed": Outcome.PASSED, "skipped": Outcome.SKIPPED}


def check(place: Place) -> list[Result]:
    """Run the cases of the chat format."""
    printed = run(
        [
            BIN / "llm-comply",
            "--base-url",
            place.base_url,
            "--api-key",
            place.key,
            "--model",
            MODEL,
            "--format",
            "openai-chat",
            "--json",
        ],
        place.directory,
    )
    try:
        return read(printed)
    except ValueError:
        raise SuiteBroken(printed[-3000:]) from None


def read(report: str) -> list[Result]:
    """Read the program's JSON report."""
    return [
        Result(
            case["id"],
            _OUTCOMES.get(case["status"], Outcome.FAILED),
            "; ".join(case.get("errors") or ()),
        )
        for case in json.loads(report)["results"]
    ]
