"""The documentation and the code have the same settings and errors, and its links work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc_project.lib import errors
from tests.support.live import ROOT

ENVIRONMENT_NAME = re.compile(r'(?:env\.\w+|_secret)\(\s*"([A-Z_]+)"')
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
TABLE_NAME = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)


def test_every_setting_is_documented_and_no_other() -> None:
    read = set(ENVIRONMENT_NAME.findall((ROOT / "svc_project/settings.py").read_text()))
    # Settings of peppers and encryption keys are plural; the singular names are default files.
    read -= {"SVC_KEY_PEPPER", "SVC_CAPTURE_KEY", "SVC_CLONE_KEY"}
    documented = set(TABLE_NAME.findall((ROOT / "docs/settings.md").read_text()))

    assert documented == read


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


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "style.md"])
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
    modules = [path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts]
    names = {path.name for path in modules}
    functions = set(
        re.findall(r"def (test_\w+)\(", "\n".join(path.read_text() for path in modules))
    )
    for name in re.findall(r"`(?:\w+/)?(test_\w+(?:\.py)?)`", text):
        assert name in (names if name.endswith(".py") else functions), name
