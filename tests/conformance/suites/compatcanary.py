"""compatcanary: a scanner of OpenAI-compatible services, an npm package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from tests.conformance.place import Place
from tests.conformance.results import Result
from tests.conformance.suites.programs import SuiteBroken, aimed, ended, json_report

PACKAGE: Final = Path(__file__).parents[1] / "js"
_SCANNER: Final = PACKAGE / "node_modules/compatcanary/src/cli.js"
_PROFILES: Final = ("chat", "modern")


def check(place: Place) -> list[Result]:
    """Scan with both profiles; a warning counts as a failure."""
    if shutil.which("node") is None or not _SCANNER.exists():
        raise SuiteBroken("node or the package is missing: install Node.js 20 or newer and npm")
    results = []
    for profile in _PROFILES:
        file = place.directory / f"compatcanary-{profile}.json"
        options = (*aimed(place), "--profile", profile, "--format", "json", "--output", file)
        key = {"OPENAI_API_KEY": place.key}
        report = json_report(["node", _SCANNER, "scan", *options], place.directory, key, file)
        results += [
            Result(f"{profile}: {probe['id']}", ended(probe["status"]), probe["summary"])
            for probe in report["results"]
        ]
    return results


def version() -> str:
    """Return the version of the scanner in package-lock.json."""
    lock = json.loads((PACKAGE / "package-lock.json").read_text())
    found: str = lock["packages"]["node_modules/compatcanary"]["version"]
    return found
