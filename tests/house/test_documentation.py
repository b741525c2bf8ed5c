"""The documentation says what the code has, both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc_project.lib import errors
from tests.live import ROOT

ENVIRONMENT_NAME = re.compile(r'(?:env\.\w+|_secret|_limit|_by_shape)\(\s*"([A-Z_]+)"')
TABLE_NAME = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)


def test_every_setting_is_documented_and_no_other() -> None:
    read = set(ENVIRONMENT_NAME.findall((ROOT / "svc_project/settings.py").read_text()))
    # Peppers and keys of encryption come in the plural; the singular names are files of the default.
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


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
