"""trustedrouter-provider-check: what a router asks of a provider before it sends callers there."""

from __future__ import annotations

import json

from tests.conformance.place import MODEL, Place
from tests.conformance.results import Outcome, Result
from tests.conformance.suites.programs import BIN, SuiteBroken, run

_OUTCOMES = {"pass": Outcome.PASSED, "skip": Outcome.SKIPPED}


def check(place: Place) -> list[Result]:
    """Run all six tiers; a warning counts as a failure."""
    report = place.directory / "provider-check.json"
    printed = run(
        [
            BIN / "trustedrouter-provider-check",
            "--base-url",
            place.base_url,
            "--model",
            MODEL,
            "--tier",
            "6",
            "--json",
            report,
        ],
        place.directory,
        {"TR_PROVIDER_API_KEY": place.key},
    )
    if not report.exists():
        raise SuiteBroken(printed[-3000:])
    return read(report.read_text(encoding="utf-8"))


def read(report: str) -> list[Result]:
    """Read the program's JSON report."""
    return [
        Result(
            check["id"],
            _OUTCOMES.get(check["status"], Outcome.FAILED),
            json.dumps(check["measured"]),
        )
        for check in json.loads(report)["checks"]
    ]
