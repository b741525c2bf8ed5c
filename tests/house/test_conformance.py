"""The page of the foreign suites has the pinned versions, and each exception its section."""

from __future__ import annotations

import re

import pytest

from tests.conformance.expectations import EXPECTATIONS, Section
from tests.conformance.page import PAGE, anchor
from tests.conformance.suites.catalogue import SUITES, Suite
from tests.support.live import ROOT


def row(suite: Suite) -> list[str]:
    """The cells of a suite in the page's first table."""
    found = re.search(
        rf"^\| \[{suite.name}\]\(#{suite.name}\) \|(.*)\|$", PAGE.read_text(), re.MULTILINE
    )
    assert found, f"{suite.name} is not on the page: make conformance ARGS=--write"
    return [cell.strip() for cell in found[1].split("|")]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_page_has_the_versions_of_the_lock(suite: Suite) -> None:
    """A new lock needs a new run: ``make conformance ARGS=--write``."""
    assert row(suite)[0] == suite.versions()


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_page_has_a_run_without_anything_unexpected(suite: Suite) -> None:
    cases, passed, listed, unexpected = (int(cell) for cell in row(suite)[1:5])
    assert unexpected == 0
    assert cases == passed + listed
    assert passed > 0


def test_the_page_lists_every_exception() -> None:
    for each in EXPECTATIONS:
        assert f"| `{each.cases}` |" in PAGE.read_text(), f"{each.suite}: {each.cases}"
        assert each.reason in PAGE.read_text()


def test_every_exception_names_a_suite_and_a_section_of_the_contract() -> None:
    names = {suite.name for suite in SUITES}
    for each in EXPECTATIONS:
        assert each.suite in names
        assert each.section in Section.__members__
        assert each.reason


@pytest.mark.parametrize("section", Section)
def test_callers_are_told_of_every_section(section: Section) -> None:
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / section.page).read_text(), re.MULTILINE)
    assert anchor(section.heading) in [anchor(heading) for heading in headings]
    assert section.name in {each.section for each in EXPECTATIONS}, "no exception needs it any more"
