"""Finds every regular expression of the product, and how the product applies it.

Compiled ones are found as objects, wherever a module or a class holds them: in tables, in lists, in
objects of the product's own classes. Those that are written in the body of a function are found in
its syntax tree. Also taken are the validators of the models' columns and the routes of both
surfaces. Missed are expressions that a function builds anew from variables (``BUILT`` of
``tests/house/test_expressions.py`` lists these functions, and a test that there are no others), and
those of libraries.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from django.apps import apps
from django.core.validators import RegexValidator
from django.urls import URLPattern, URLResolver, get_resolver

from tests.support.live import ROOT

PACKAGES = ("svc_project", "inference", "speech", "usage", "accounts", "core", "simulators")
SURFACES = ("svc_project.urls", "speech.api.urls")
_PROGRAMS = {"speech.engines.kokoro.worker"}
"""Programs of their own whose packages (onnxruntime) are not installed everywhere, so they are not
imported. ``test_every_expression_that_is_written_out_is_among_them`` fails when one has an expression."""
_CALLS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
Method = Literal["match", "fullmatch", "finditer"]


@dataclass(frozen=True)
class Expression:
    """``method``: finditer unless the product applies it at the beginning of a text only."""

    name: str
    pattern: re.Pattern[Any]
    method: Method = "finditer"

    def run(self, text: str) -> None:
        """Apply it to all of ``text``."""
        subject = text.encode() if isinstance(self.pattern.pattern, bytes) else text
        if self.method == "finditer":
            for _ in self.pattern.finditer(subject):
                pass
        else:
            getattr(self.pattern, self.method)(subject)


def all_expressions() -> list[Expression]:
    """Return each different expression once, under the first of its names."""
    searched = _searched()
    found: dict[tuple[Any, int, Method], Expression] = {}
    for each in (*_compiled(searched), *inline(), *_validators(), *_routes()):
        found.setdefault((each.pattern.pattern, each.pattern.flags, each.method), each)
    return list(found.values())


def sources() -> Iterator[tuple[str, Path, ast.Module]]:
    """Yield the name, path and syntax tree of every module but migrations."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                name = ".".join(parts).removesuffix(".__init__")
                yield name, path, ast.parse(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Call:
    """A call of one of ``re``'s functions; ``function`` is "" outside of functions."""

    module: str
    function: str
    method: str
    pattern: str | bytes | None
    """None where it is not written out."""


def calls() -> Iterator[Call]:
    """Yield every call of a function of ``re`` that takes an expression."""
    for module, _, tree in sources():
        yield from _calls_in(module, tree, "")


def _calls_in(module: str, node: ast.AST, function: str) -> Iterator[Call]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = getattr(child, "name", "<lambda>")
        if isinstance(child, ast.Call) and (method := _method_of(child)):
            given = child.args[0]
            pattern = given.value if isinstance(given, ast.Constant) else None
            assert pattern is None or isinstance(pattern, str | bytes)
            yield Call(module, function, method, pattern)
        yield from _calls_in(module, child, inside)


def _method_of(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "re":
        return function.attr if function.attr in _CALLS else None
    return None


def inline() -> Iterator[Expression]:
    """Yield the expressions that are written where they are used."""
    for each in calls():
        if each.pattern is not None and each.method != "compile":
            method: Method = (
                each.method if each.method in ("match", "fullmatch") else "finditer"  # type: ignore[assignment]
            )
            yield Expression(f"{each.module}:{each.function}()", re.compile(each.pattern), method)


def _compiled(searched: Mapping[str, Method]) -> Iterator[Expression]:
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for listed in pkgutil.walk_packages(path, package + "."):
            if ".migrations" not in listed.name and listed.name not in _PROGRAMS:
                importlib.import_module(listed.name)
    walk = _Walk()
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES and ".migrations" not in name:
            for key, value in list(vars(module).items()):
                if not key.startswith("__"):
                    for where, pattern in walk.patterns(f"{name}:{key}", value):
                        yield Expression(where, pattern, searched.get(where, "finditer"))


class _Walk:
    """Walks through what modules hold, each object once, and yields the expressions in it."""

    def __init__(self) -> None:
        self._kept: dict[int, object] = {}

    def patterns(self, name: str, value: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
        if isinstance(value, re.Pattern):
            yield name, value
            return
        if isinstance(value, str | bytes | int | float) or id(value) in self._kept:
            return
        self._kept[id(value)] = value
        for key, held in self._held(value):
            yield from self.patterns(f"{name}{key}", held)

    def _held(self, value: Any) -> Iterable[tuple[str, Any]]:
        if isinstance(value, dict):
            for number, pair in enumerate(value.items()):
                yield f"[{number}]", pair
        elif isinstance(value, list | tuple | set | frozenset):
            yield from ((f"[{number}]", each) for number, each in enumerate(value))
        elif isinstance(value, functools.partial):
            yield "()", (value.args, value.keywords)
        elif isinstance(value, type) and _is_ours(value):
            yield from ((f".{key}", each) for key, each in list(vars(value).items()))
        elif _is_ours(type(value)):
            slots = (getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
            names = {*getattr(value, "__dict__", {}), *(each for slot in slots for each in slot)}
            yield from ((f".{each}", getattr(value, each, None)) for each in sorted(names))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in PACKAGES


def _validators() -> Iterator[Expression]:
    for model in apps.get_models():
        for field in model._meta.get_fields():
            for each in getattr(field, "validators", ()):
                if isinstance(each, RegexValidator):
                    name = f"{model.__module__}:{model.__name__}.{field.name}"
                    yield Expression(name, re.compile(each.regex))


def _routes() -> Iterator[Expression]:
    waiting: list[Any] = [each for name in SURFACES for each in get_resolver(name).url_patterns]
    while waiting:
        route: URLPattern | URLResolver = waiting.pop()
        yield Expression(f"route {route.pattern}", re.compile(route.pattern.regex.pattern))
        if isinstance(route, URLResolver):
            waiting += route.url_patterns


def _searched() -> dict[str, Method]:
    """Return the expressions that are applied at the beginning of texts only, by their names.

    Each use of the name is a call of ``match`` or ``fullmatch`` with a text and no place in it.
    """
    found: dict[str, set[str]] = {}
    for module, _, tree in sources():
        origins = _imported(tree)
        called = {
            id(call.func.value): call.func.attr
            for call in ast.walk(tree)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and len(call.args) == 1
            and not call.keywords
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = origins.get(node.id, f"{module}:{node.id}")
                found.setdefault(name, set()).add(called.get(id(node), "finditer"))
            elif isinstance(node, ast.Attribute):
                # Perhaps another module's: not worth the trouble to find out whose.
                found.setdefault(node.attr, set()).add("finditer")
    return {
        name: "fullmatch" if used == {"fullmatch"} else "match"
        for name, used in found.items()
        if used <= {"match", "fullmatch"} and name.partition(":")[2] not in found
    }


def _imported(tree: ast.Module) -> dict[str, str]:
    return {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
