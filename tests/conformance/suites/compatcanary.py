"""compatcanary: a scanner of OpenAI-compatible services, an npm package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.conformance.place import MODEL, Place
from tests.conformance.results import Outcome, Result
from tests.conformance.suites.programs import SuiteBroken, run

PACKAGE: Final = Path(__file__).parents[1] / "js"
_SCANNER: Final = PACKAGE / "node_modules/compatcanary/src/cli.js"
_PROFILES: Final = ("chat", "modern")


def check(place: Place) -> list[Result]:
    """Scan with both profiles; a warning counts as a failure."""
    if shutil.which("node") is None or not _SCANNER.exists():
        raise SuiteBroken("node or the package is missing: install Node.js 20 or newer and npm")
    results = []
    for profile in _PROFILES:
        report = place.directory / f"compatcanary-{profile}.json"
        printed = run(
            [
                "node",
                _SCANNER,
                "scan",
                "--base-url",
                place.base_url,
                "--model",
                MODEL,
                "--profile",
                profile,
                "--format",
                "json",
                "--output",
                report,
            ],
            place.directory,
            {"OPENAI_API_KEY": place.key},
        )
        if not report.exists():
            raise SuiteBroken(printed[-3000:])
        results += read(profile, report.read_text(encoding="utf-8"))
    return results


def read(profile: str, report: str) -> list[Result]:
    """Read the scanner's JSON report of one profile."""
    return [
        Result(
            f"{profile}: {probe['id']}",
            Outcome.PASSED if probe["status"] == "pass" else Outcome.FAILED,
            probe["summary"],
        )
        for probe in json.loads(report)["results"]
    ]


def version() -> str:
    """Return the version of the scanner in package-lock.json."""
    lock = json.loads((PACKAGE / "package-lock.json").read_text())
    found: str = lock["packages"]["node_modules/compatcanary"]["version"]
    return found
