"""Parses the faults of the simulators: ``name`` or ``name@number``, joined by commas.

Each simulator defines its own faults (docs/develop/simulator.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=StrEnum)


@dataclass(frozen=True)
class Faults(Generic[Name]):
    """The faults of one request, with the number of each; ``text`` is their source."""

    text: str | None = None
    numbers: tuple[tuple[Name, float | None], ...] = ()

    def __contains__(self, name: Name) -> bool:
        return any(name is known for known, _ in self.numbers)

    def number(self, name: Name) -> float | None:
        """The number given with ``name``; None when there is none, or no such fault."""
        return next((number for known, number in self.numbers if known is name), None)

    def early(self, name: Name) -> bool:
        """Whether ``name`` happens before the headers: it was given without a number."""
        return name in self and self.number(name) is None


@dataclass(frozen=True, slots=True)
class FaultGrammar(Generic[Name]):
    """The faults of one simulator and the numbers that they take or need.

    ``check`` raises ``ValueError`` for a number that a fault cannot have.
    """

    names: type[Name]
    takes_a_number: Collection[Name]
    needs_a_number: Collection[Name]
    check: Callable[[Name, float], None]

    def parse(self, text: str) -> Faults[Name]:
        """Parse ``cut@7`` or ``no_usage,cut@7``; ``none`` and an empty text mean no faults.

        Raises ``ValueError`` with a message for the user.
        """
        if text in ("", "none"):
            return Faults()
        return Faults(text, tuple(map(self._fault, text.split(","))))

    def _fault(self, text: str) -> tuple[Name, float | None]:
        written, _, argument = text.replace("=", "@", 1).partition("@")
        try:
            name = self.names(written)
        except ValueError:
            raise ValueError(
                f"There is no fault {written!r}. Use one of {', '.join(self.names)}."
            ) from None
        if not argument:
            if name in self.needs_a_number:
                raise ValueError(f"The fault {name} needs a number: {name}@1.")
            return name, None
        if name not in self.takes_a_number:
            raise ValueError(f"The fault {name} takes no number.")
        try:
            number = float(argument)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise ValueError(f"The number of the fault {name} must be zero or more.")
        self.check(name, number)
        return name, number
