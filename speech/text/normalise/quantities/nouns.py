"""Nouns after numbers, in each language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from speech.text.language import Language
from speech.text.normalise.numbers.figures import is_one


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in the singular and in the plural."""

    one: str
    many: str

    def name(self, figure: str) -> str:
        """The form that goes with a canonical figure."""
        return self.one if is_one(figure) else self.many


Nouns = Mapping[Language, Noun]
