"""The threat model gives the bounds of the suite, and the page of measurements lists every attacker."""

from __future__ import annotations

import pytest

from tests.resilience.attackers import NAMED
from tests.resilience.measuring import table
from tests.resilience.measuring.bounds import (
    CONNECTIONS,
    MEMORY,
    MOST_CAPTURES,
    PAGES_MEMORY,
    SPOOLED,
)
from tests.resilience.measuring.processes import MEGABYTE
from tests.resilience.measuring.street import LONGEST_PROBE, SLOWER
from tests.support.live import ROOT


@pytest.mark.parametrize(
    "row",
    [
        f"| The longest answer of `/livez` and `/readyz` | {LONGEST_PROBE:.0f} s in the suite",
        f"| Resident memory of a worker | {MEMORY // MEGABYTE} MB ",
        f"| Resident memory of the page process | {PAGES_MEMORY // MEGABYTE} MB |",
        f"| Database connections of a worker | {CONNECTIONS} |",
        f"| Bodies stored on disk | {SPOOLED // MEGABYTE} MB |",
        f"for as many as it can | {MOST_CAPTURES} |",
        f"of request of the victim | {SLOWER} times",
    ],
)
def test_the_threat_model_gives_the_bounds_of_the_suite(row: str) -> None:
    assert row in (ROOT / "docs/explain/threat-model.md").read_text()


@pytest.mark.parametrize("name", NAMED)
def test_the_page_has_each_attacker_as_the_code_describes_him(name: str) -> None:
    _, _, written = table.PAGE.read_text().partition(table.BEGIN)

    assert f"- **{name.replace('_', ' ')}**: {table.described(name)}\n" in written
