"""Foreign test suites against a running gateway (``make conformance``).

    python -m tests.conformance [SUITE ...] [--write] [--without-node]

Starts a gateway with SQLite and the simulator on free ports, runs the suites and compares their
results with ``expectations.py``. The exit status is 1 when a result is not the listed one, and 2 when
a suite could not run. ``--without-node`` leaves out what needs node and says so; the result is then not
complete, and ``--write`` refuses it. ``--write`` writes docs/conformance.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import django

import tests.support.environment  # noqa: F401  # before Django reads its settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
django.setup()

from tests.conformance.expectations import of  # noqa: E402
from tests.conformance.page import PAGE, Run, written  # noqa: E402
from tests.conformance.place import Place, place  # noqa: E402
from tests.conformance.results import compare  # noqa: E402
from tests.conformance.suites.catalogue import SUITES, Suite  # noqa: E402
from tests.conformance.suites.programs import BIN, SuiteBroken  # noqa: E402

NEEDS_NODE: Final = "compatcanary"
_DIFFERS: Final = 1
_BROKEN: Final = 2


def run_suite(suite: Suite, at: Place) -> Run:
    """Run one suite and say how it went. Raises ``SuiteBroken``."""
    began = time.monotonic()
    verdict = compare(suite.run(at), of(suite.name))
    seconds = time.monotonic() - began
    listed = sum(count for _, count in verdict.expected)
    print(
        f"{suite.name}: {verdict.cases} cases, {verdict.passed} passed, {listed} as listed, "
        f"{len(verdict.unexpected)} unexpected, {seconds:.0f} s",
        flush=True,
    )
    for line in verdict.unexpected:
        print(f"  UNEXPECTED {line}", flush=True)
    return Run(suite, verdict, seconds)


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=", ".join(each.name for each in SUITES)
    )
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--without-node", action="store_true", help=f"leave out {NEEDS_NODE}")
    options = parser.parse_args(arguments)
    names = options.suites or [each.name for each in SUITES]
    if unknown := set(names) - {each.name for each in SUITES}:
        parser.error(f"no suite is named {', '.join(sorted(unknown))}")
    if options.write and (options.suites or options.without_node):
        parser.error("--write needs every suite")
    if not BIN.exists():
        parser.error(f"{BIN.parent} is missing: run `make conformance`")
    if options.without_node and NEEDS_NODE in names:
        names.remove(NEEDS_NODE)
        print(f"SKIPPED: {NEEDS_NODE}, because of --without-node. The result is not complete.")
    runs, broken = [], []
    with place() as at:
        for suite in (each for each in SUITES if each.name in names):
            try:
                runs.append(run_suite(suite, at))
            except SuiteBroken as problem:
                broken.append(suite.name)
                print(f"{suite.name}: BROKEN: {problem}", flush=True)
    if broken:
        return _BROKEN
    if options.write:
        date = datetime.now(UTC).date().isoformat()
        machine = (
            f"Python {platform.python_version()}, {os.cpu_count()} processors, SQLite, one worker"
        )
        PAGE.write_text(written(runs, date, machine), encoding="utf-8")
        print(f"Wrote {PAGE.name}.")
    return _DIFFERS if any(run.verdict.unexpected for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
