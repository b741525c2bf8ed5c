"""Sizes of folders and modules, the layers, and the page that names each folder."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("svc_project", "simulators", "inference", "speech", "usage", "accounts", "core")
MOST_MODULES = 20
MOST_CODE_LINES = 300
MOST_TEST_LINES = 400
TABLES = {"svc_project/operator_settings.py"}
"""Longer modules that are one table, an entry a setting."""
SUITES = {
    "browser",
    "clients",
    "conformance",
    "faults",
    "fuzz",
    "house",
    "real",
    "resilience",
    "spec",
    "support",
}
"""The folders of ``tests/`` that do not stand for a folder of the source."""
MOST_FUNCTION_LINES = 40
LONGER_FUNCTIONS = {
    "core/asgi/http.py read_body",
    "inference/chat/relays/stream.py _take_event",
}
"""Two that run for each read and each frame, where another call would cost as much as the check in
it: one counts bytes, times and places of a body, one takes a chunk."""


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


NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(path: Path) -> int:
    """How many lines of ``path`` hold code: blank lines, comments and docstrings count nothing."""
    with tokenize.open(path) as file:
        held = {
            line
            for token in tokenize.generate_tokens(file.readline)
            if token.type not in NO_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            held -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(held)


def folders(paths: list[Path]) -> list[Path]:
    return sorted({path.parent for path in paths})


@pytest.mark.parametrize(
    "folder",
    folders(modules()) + folders(modules_of_tests()),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_folder_has_at_most_20_modules(folder: Path) -> None:
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


def test_no_module_has_more_than_300_lines_of_code() -> None:
    lines = {str(path.relative_to(ROOT)): code_lines(path) for path in modules()}
    found = {name for name, count in lines.items() if count > MOST_CODE_LINES}
    assert found == TABLES, {name: lines[name] for name in found ^ TABLES}


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
    """The folders of the page's tree: packages, their folders, and the folders inside those."""
    tree = page().split("```")[1]
    found, package, room = set(), "", ""
    for line in tree.splitlines():
        names = re.findall(r"(?<![\w/])([a-z_]+)/(?![\w/])", line)
        if names and not line.startswith(" "):
            package = names.pop(0)
            found.add(f"{package}/")
        for name in names:
            inside = (ROOT / package / room / name) if room else None
            if line.startswith("  ") and inside is not None and inside.is_dir():
                found.add(f"{package}/{room}/{name}/")
            else:
                room = name
                found.add(f"{package}/{name}/")
        if not line.startswith(" "):
            room = ""
    return found


def test_the_page_lists_every_folder_and_no_other() -> None:
    there = {f"{path.relative_to(ROOT)}/" for path in folders(modules())}
    there -= {each for each in there if each.endswith(("management/commands/", "formats/en/"))}
    known = {each for each in drawn() if each.split("/")[0] in PACKAGES}
    assert [each for each in sorted(known) if not (ROOT / each).is_dir()] == []
    assert there - known == set()


def test_few_modules_share_a_class_name() -> None:
    """Django finds a command by the name of its class."""
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and node.name != "Command":
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in homes.items() if len(found) > 3} == {}
