"""Sizes of folders and modules, the layers, and the page that names each folder."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("svc_project", "simulators", "inference", "speech", "usage", "accounts")
MOST_MODULES = 12
MOST_LINES = 300
MOST_TEST_LINES = 400
SUITES = {"browser", "clients", "faults", "fuzz", "house", "real", "resilience", "spec", "support"}
"""The folders of ``tests/`` that do not stand for a folder of the source."""
ONE_MODULE_EACH = {"tests/resilience/attackers"}
"""Folders whose modules are entries of a list; they may have any number."""
MOST_FUNCTION_LINES = 40
LONGER_FUNCTIONS = {
    "svc_project/lib/asgi/http.py read_body",
    "inference/chat/relays/stream.py _take_event",
}
"""Two that run for each read and each frame, where another call would cost as much as the check in
it: one counts bytes, times and places of a body, one takes a chunk."""
LONGER = {
    "svc_project/settings.py": 408,
}
"""Longer modules and their largest length: none may grow, and none may be added.

The settings are one list, which a test compares with docs/settings.md.
"""


def modules() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts and path.name != "__init__.py"
    ]


def modules_of_tests() -> list[Path]:
    return [
        path
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "node_modules" not in path.parts and path.name not in ("__init__.py", "conftest.py")
    ]


def folders(paths: list[Path]) -> list[Path]:
    return sorted({path.parent for path in paths})


@pytest.mark.parametrize(
    "folder",
    folders(modules()) + folders(modules_of_tests()),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_folder_has_at_most_twelve_modules(folder: Path) -> None:
    if str(folder.relative_to(ROOT)) in ONE_MODULE_EACH:
        return
    found = [path.name for path in modules() + modules_of_tests() if path.parent == folder]
    assert len(found) <= MOST_MODULES, found


def test_no_test_module_is_longer_than_400_lines() -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules_of_tests()
    }
    assert {name: count for name, count in lines.items() if count > MOST_TEST_LINES} == {}


def test_folders_of_tests_mirror_the_source() -> None:
    """A folder of tests is a suite, or has the name of a folder or a module of the source."""
    for folder in folders(modules_of_tests()):
        inside = folder.relative_to(ROOT / "tests")
        if inside.parts and inside.parts[0] not in SUITES:
            assert (ROOT / inside).is_dir(), f"{folder.relative_to(ROOT)} mirrors no folder"


def test_what_is_not_a_test_is_in_the_support_package() -> None:
    """Programs of a suite that are run by hand, and what only they use, may stay beside it."""
    mirrored = [
        path
        for path in modules_of_tests()
        if path.relative_to(ROOT / "tests").parts[0] not in SUITES
        and not path.name.startswith("test_")
    ]
    assert mirrored == []


def test_no_module_is_longer_than_300_lines() -> None:
    too_long = {}
    for path in modules():
        name = str(path.relative_to(ROOT))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGER.get(name, MOST_LINES):
            too_long[name] = lines
    assert too_long == {}


def test_every_exception_is_still_needed() -> None:
    """A module that is short enough must be removed from the list."""
    lines = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in LONGER}
    assert {name: count for name, count in lines.items() if count <= MOST_LINES} == {}


def test_no_function_is_longer_than_40_lines() -> None:
    """docs/develop/style.md, Size."""
    too_long = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    too_long[f"{path.relative_to(ROOT)} {node.name}"] = lines
    assert too_long.keys() <= LONGER_FUNCTIONS


def page() -> str:
    return (ROOT / "docs/develop/layout.md").read_text(encoding="utf-8")


def drawn() -> set[str]:
    """The folders of the page's tree, by their indentation."""
    tree = page().split("```")[1]
    found, parents = set(), [""]
    for line in tree.splitlines():
        for indent, name in re.findall(r"^( *)((?:[a-z_]+/ +)*[a-z_]+/)(?= |$)", line):
            depth = len(indent) // 2
            for each in name.split():
                parents[depth + 1 :] = [parents[depth] + each]
                found.add(parents[depth] + each)
    return found


def test_the_page_lists_every_folder_and_no_other() -> None:
    there = {f"{path.relative_to(ROOT)}/" for path in folders(modules())}
    there -= {each for each in there if each.endswith("management/commands/")}
    known = {each for each in drawn() if each.split("/")[0] in PACKAGES}
    assert [each for each in sorted(known) if not (ROOT / each).is_dir()] == []
    assert there - known == set()


def test_every_root_module_of_the_project_stands_in_the_first_layer() -> None:
    """A module that the contract does not name could be imported by an app."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = contracts["tool"]["importlinter"]["contracts"][0]["layers"]
    named = {each.strip().removeprefix("svc_project.") for each in layers[0].split(":")}
    there = {
        path.stem if path.suffix == ".py" else path.name
        for path in (ROOT / "svc_project").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert named == there - {"__init__", "lib"}
