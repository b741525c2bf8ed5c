"""Writes docs/conformance.md from a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.conformance.expectations import Section
from tests.conformance.results import Verdict
from tests.conformance.suites.catalogue import Suite
from tests.support.live import ROOT

PAGE: Final = ROOT / "docs/conformance.md"
_HEAD: Final = """# Conformance

Test suites that others wrote, run against a running gateway, and two tables of this project's own for
HTTP/1.1 and WebSocket, written from the RFCs. `make conformance` runs them again and fails when a result
is not the one that is listed here; with `ARGS=--write` it writes this page. What does not pass is listed
with a reason and the section of the contract: the contract demands otherwise (failed), or the suite leaves
the case out for such a service (skipped). A case that is listed and passes is unexpected, too.
[How it works](develop/testing.md#foreign-suites).
"""


@dataclass(frozen=True)
class Run:
    """One suite of a run: its verdict and how long it took."""

    suite: Suite
    verdict: Verdict
    seconds: float


def written(runs: Sequence[Run], date: str, machine: str) -> str:
    """Return the page."""
    return "\n".join(
        [_HEAD, f"The last run: {date}, {machine}.", "", *_table(runs), "", *_suites(runs)]
    )


def _table(runs: Sequence[Run]) -> list[str]:
    lines = [
        "| Suite | Versions | Cases | Passed | Listed | Unexpected | Seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        verdict = run.verdict
        listed = sum(count for _, count in verdict.expected)
        lines.append(
            f"| [{run.suite.name}](#{run.suite.name}) | {run.suite.versions()} | {verdict.cases} "
            f"| {verdict.passed} | {listed} | {len(verdict.unexpected)} | {run.seconds:.0f} |"
        )
    return lines


def _suites(runs: Sequence[Run]) -> list[str]:
    lines = []
    for run in runs:
        lines += [f"## {run.suite.name}", "", f"{run.suite.what}.", ""]
        if run.verdict.expected:
            lines += [
                "| Cases | How many | End | The contract's section | Why |",
                "|---|---|---|---|---|",
            ]
            for each, count in run.verdict.expected:
                section = Section[each.section]
                lines.append(
                    f"| `{each.cases}` | {count} | {each.outcome.value} "
                    f"| [{section.title}]({section.page}#{anchor(section.heading)}) | {each.reason} |"
                )
            lines.append("")
        if run.verdict.unexpected:
            lines += [
                "Unexpected:",
                "",
                *(f"- {_plain(each)}" for each in run.verdict.unexpected),
                "",
            ]
    return lines


def anchor(heading: str) -> str:
    """Return the anchor of a heading as GitHub makes it."""
    kept = "".join(each for each in heading.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
