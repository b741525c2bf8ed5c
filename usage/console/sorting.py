"""Tables that are sorted by links, so that an order has an address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Line = TypeVar("Line")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: the value of ``aria-sort``, and the link that sorts by it."""

    direction: str
    link: str


@dataclass(frozen=True)
class Order(Generic[Line]):
    """A table's columns with what they are sorted by, and its order without a parameter.

    The parameter is a column's name, ``-`` before it for the largest first. A column of numbers
    begins with the largest; ``words`` are those that begin with the smallest.
    """

    keys: Mapping[str, Callable[[Line], Any]]
    default: str
    words: frozenset[str] = frozenset({"name"})

    def sort(self, lines: Iterable[Line], asked: str | None) -> list[Line]:
        """Sort ``lines``, equal ones as they come."""
        name = self._valid(asked)
        key = self.keys[name.removeprefix("-")]
        return sorted(lines, key=key, reverse=name.startswith("-"))

    def heads(self, asked: str | None, link: Callable[[str], str]) -> dict[str, Head]:
        """The heads by name; ``link`` returns the address of a value of the parameter."""
        current = self._valid(asked)
        found = {}
        for name in self.keys:
            if current.removeprefix("-") != name:
                found[name] = Head("none", link(name if name in self.words else f"-{name}"))
            elif current.startswith("-"):
                found[name] = Head("descending", link(name))
            else:
                found[name] = Head("ascending", link(f"-{name}"))
        return found

    def _valid(self, asked: str | None) -> str:
        return asked if asked and asked.removeprefix("-") in self.keys else self.default
