"""The page of the figures says what the suite demands, and shows every attacker."""

from __future__ import annotations

import pytest

from tests.resilience import table
from tests.resilience.attackers import FURTHER, NAMED
from tests.resilience.bounds import CONNECTIONS, MEMORY, MOST_CAPTURES, SPOOLED
from tests.resilience.processes import MEGABYTE
from tests.resilience.test_neighbours import LONGEST_PROBE, SLOWER


@pytest.mark.parametrize(
    "row",
    [
        f"| The longest answer of `/livez` and `/readyz` | {LONGEST_PROBE:.0f} s in the suite",
        f"| Resident memory of a worker | {MEMORY // MEGABYTE} MB ",
        f"| Database connections of a worker | {CONNECTIONS} |",
        f"| Bodies stored on disk | {SPOOLED // MEGABYTE} MB |",
        f"for as many as it can | {MOST_CAPTURES} |",
        f"of request of the victim | {SLOWER} times",
    ],
)
def test_the_page_says_what_the_suite_demands(row: str) -> None:
    assert row in table.PAGE.read_text()


@pytest.mark.parametrize("name", NAMED)
def test_the_page_has_each_attacker_as_his_module_describes_him(name: str) -> None:
    _, _, written = table.PAGE.read_text().partition(table.BEGIN)

    assert f"- **{name.replace('_', ' ')}**: {table.described(name)}\n" in written


@pytest.mark.parametrize("name", [*NAMED, *FURTHER])
def test_a_docstring_says_who_it_is_and_what_he_hopes_for(name: str) -> None:
    assert "hopes" in table.described(name)
