"""Runs the programs of .venv-conformance, and reads what pytest reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tests.conformance.place import MODEL, Place
from tests.conformance.results import Outcome, Result
from tests.support.live import ROOT

BIN: Final = ROOT / ".venv-conformance/bin"
LOCK: Final = ROOT / "requirements-conformance.txt"
PROGRAMS: Final = ROOT / "tests/conformance/programs"
_SECONDS: Final = 300
_OUTCOMES: Final = {
    **dict.fromkeys(("pass", "passed"), Outcome.PASSED),
    **dict.fromkeys(("skip", "skipped"), Outcome.SKIPPED),
}
_NOT_FOR_SUITES: Final = ("DJANGO_SETTINGS_MODULE", "PYTHONPATH", "OPENAI_API_KEY")


class SuiteBroken(Exception):
    """A suite could not run at all."""


def run(
    command: Sequence[str | Path],
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end, whatever its exit status, and return what it printed.

    Raises ``SuiteBroken`` when it takes longer than five minutes.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_SUITES}
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**inherited, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise SuiteBroken(f"{command[0]} took longer than {_SECONDS} s") from late
    return done.stdout


def aimed(place: Place) -> tuple[str, ...]:
    """Return the options by which scanners are given the gateway and its model."""
    return ("--base-url", place.base_url, "--model", MODEL)


def json_report(
    command: Sequence[str | Path],
    directory: Path,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Any:
    """Run a program, and read the report in JSON that it writes to ``file`` or else prints.

    Raises ``SuiteBroken`` when there is none.
    """
    printed = run(command, directory, environment)
    try:
        return json.loads(printed if file is None else file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SuiteBroken(printed[-3000:]) from None


def ended(status: str) -> Outcome:
    """Read how a scanner says that a case ended; a warning counts as a failure."""
    return _OUTCOMES.get(status, Outcome.FAILED)


def pytest_results(
    arguments: Sequence[str | Path], directory: Path, environment: Mapping[str, str]
) -> list[Result]:
    """Run pytest in .venv-conformance; return a result for each test. Raises ``SuiteBroken``."""
    report = directory / "report.xml"
    report.unlink(missing_ok=True)
    command: list[str | Path] = [BIN / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    printed = run([*command, "--junit-xml", report, *arguments], directory, environment)
    results = junit(report.read_text(encoding="utf-8")) if report.exists() else []
    if not results:
        raise SuiteBroken(printed[-3000:])
    return results


def junit(report: str) -> list[Result]:
    """Read pytest's JUnit report; a case is named ``Class::test``."""
    results = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        scope = (case.get("classname") or "").rpartition(".")[2]
        name = f"{scope}::{case.get('name')}"
        outcome, detail = Outcome.PASSED, ""
        for kind, meaning in (
            ("skipped", Outcome.SKIPPED),
            ("failure", Outcome.FAILED),
            ("error", Outcome.FAILED),
        ):
            if (found := case.find(kind)) is not None:
                outcome, detail = meaning, found.get("message") or ""
        results.append(Result(name, outcome, detail))
    return results


def locked(package: str) -> str:
    """Return the version of a package in requirements-conformance.txt."""
    found = re.search(rf"^{re.escape(package)}==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert found, f"{package} is not in {LOCK.name}"
    return found[1]
