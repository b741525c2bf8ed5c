"""The documentation and the code have the same settings and errors, and its links work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core import errors
from svc_project.operator_settings import REMOVED, SETTINGS, page
from tests.support.live import ROOT

ENVIRONMENT_NAME = re.compile(r'(?:env\.\w+|_secret)\(\s*"([A-Z_]+)"')
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
NAMES_TESTS = re.compile(
    r"`(tests/[\w/.]+(?:::test_\w+)?|(?:\w+/)*test_\w+(?:\.py(?:::test_\w+)?)?)`"
)
"""A folder or module of tests, a test in a module, or a test alone."""
MOST_SETTINGS = 70


def test_every_setting_is_in_the_table_and_no_other() -> None:
    read = set(ENVIRONMENT_NAME.findall((ROOT / "svc_project/settings.py").read_text()))
    # Settings of peppers and encryption keys are plural; the singular names are default files.
    read -= {"SVC_KEY_PEPPER", "SVC_CAPTURE_KEY", "SVC_CLONE_KEY"}

    assert read == SETTINGS.keys()
    assert not SETTINGS.keys() & REMOVED.keys()
    assert len(SETTINGS) <= MOST_SETTINGS


def test_the_page_of_settings_is_the_table() -> None:
    """Where it fails: ``manage.py describe_settings > docs/settings.md``."""
    assert (ROOT / "docs/settings.md").read_text() == page()


def test_the_documentation_names_no_setting_that_there_is_not() -> None:
    for path in PAGES:
        if path.name != "CHANGELOG.md":
            named = set(re.findall(r"`(SVC_[A-Z_]+[A-Z])`", path.read_text()))
            assert not named & REMOVED.keys(), path.name


def _codes() -> dict[str, int]:
    found: dict[str, int] = {}
    waiting = [errors.ApiError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.code is not None:
            found[kind.code] = kind.status
    return found


def test_the_error_table_of_the_documentation_is_the_code() -> None:
    table = re.findall(
        r"^\| (\d{3}) \| `\w+` \| `(\w+)` \|",
        (ROOT / "docs/api/inference.md").read_text(),
        re.MULTILINE,
    )

    assert {code: int(status) for status, code in table} == _codes()


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def _defined(module: Path) -> set[str]:
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", module.read_text(), re.MULTILINE))


@cache
def _tests() -> dict[Path, set[str]]:
    """Every module of ``tests/`` with the tests that it defines."""
    modules = [path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts]
    return {path.relative_to(ROOT): _defined(path) for path in modules}


def missing_tests(text: str) -> list[str]:
    """The tests, modules and folders of tests that ``text`` names and that do not exist.

    Within a line or a cell, a module without a folder is in that of the module before it, and a
    test without a module is in the module before it. Where none is before, it may be anywhere.
    """
    return [
        reference
        for part in re.split(r"\n| \| ", text)
        for reference, exists in _looked_up(part)
        if not exists
    ]


def _looked_up(part: str) -> Iterator[tuple[str, bool]]:
    """Each test that a line or cell names, and whether it exists."""
    module: Path | None = None
    for reference in re.findall(NAMES_TESTS, part):
        path, _, test = reference.partition("::")
        if path.startswith("test_") and not path.endswith(".py"):
            path, test = "", path
        if path and not path.endswith(".py"):
            place = ROOT / path
            yield reference, place.is_file() or any(place.rglob("*.py"))
            continue
        if path.startswith("tests/"):
            module = Path(path)
        elif path:
            module = _module_of(path, module)
        named = _tests() if module is None else {module: _tests().get(module, set())}
        exists = module is None or module in _tests()
        yield reference, exists and (not test or any(test in tests for tests in named.values()))


def _module_of(path: str, before: Path | None) -> Path:
    """The module that ``path`` names without its whole folder."""
    if before is not None and "/" not in path:
        return before.parent / path
    found = [each for each in _tests() if f"/{each}".endswith(f"/{path}")]
    return found[0] if found else Path(path)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "style.md"])
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    assert missing_tests(page.read_text()) == []


def _rows(page: Path) -> Iterator[list[str]]:
    """The cells of every row of the tables of ``page`` whose last column is 'Shown by'."""
    is_shown = False
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if not line.startswith("|"):
            is_shown = False
        elif cells[-1].rstrip(" |") == "Shown by":
            is_shown = True
        elif is_shown and not line.startswith("|---"):
            yield cells


def test_every_defence_of_the_threat_model_names_the_tests_that_show_it() -> None:
    rows = list(_rows(ROOT / "docs/explain/threat-model.md"))

    assert len(rows) > 60
    for threat, *_, shown in rows:
        assert re.findall(NAMES_TESTS, shown), threat


THREAD = re.compile(
    r"(?:DatabaseThreads?|FairPool|SessionLookups)\(\s*\"([a-z-]+)\""
    r"|thread_name_prefix=\"([a-z-]+)\"|Thread\(target=[\w.]+, name=\"([a-z-]+)\""
)
"""Where the source names a thread."""


def test_the_page_of_what_runs_has_every_named_thread() -> None:
    page = (ROOT / "docs/operate/what-runs.md").read_text()
    packages = ("svc_project", "core", "accounts", "usage", "inference", "speech")
    sources = [path for each in packages for path in (ROOT / each).rglob("*.py")]
    named = {
        next(filter(None, each)) for path in sources for each in THREAD.findall(path.read_text())
    }

    assert len(named) > 10
    assert [name for name in sorted(named) if f"`{name}" not in page] == []
