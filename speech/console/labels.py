"""The search among voices: by a word, and by the labels that say how they sound, as links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlencode

from speech.models import LABELS

_LONGEST: Final = 80
"""Characters of a search that are read."""


class Labelled(Protocol):
    """A voice with its labels."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Chip:
    """A label as a link that asks for it, or no longer does; ``count``: how many voices it leaves."""

    text: str
    link: str
    count: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """The labels of one kind."""

    name: str
    chips: list[Chip]


class VoiceSearch:
    """What is searched for, as the address of the page has it; ``kept`` are its other parameters."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self.text = query.get("q", "").strip()[:_LONGEST]
        self.wanted = {name: query[name] for name in LABELS if query.get(name)}
        self.kept = {"voice": query["voice"]} if query.get("voice") else {}

    @property
    def is_active(self) -> bool:
        return bool(self.text or self.wanted)

    @property
    def reset(self) -> str:
        """The address of the page without the search."""
        return "?" + urlencode(self.kept)

    @property
    def hidden(self) -> dict[str, str]:
        """The parameters that a search for another word keeps."""
        return {**self.kept, **self.wanted}

    def found(self, voices: Iterable[Labelled]) -> frozenset[str]:
        """The ids of the voices that fit."""
        return frozenset(each.id for each in self._fitting(voices, self.wanted))

    def facets(self, voices: Iterable[Labelled]) -> list[Facet]:
        """The labels of ``voices``, each with how many fit it and everything else that is searched for."""
        voices = list(voices)
        facets = []
        for name in LABELS:
            others = {other: label for other, label in self.wanted.items() if other != name}
            counts = Counter(
                each.labels[name] for each in self._fitting(voices, others) if name in each.labels
            )
            chosen = self.wanted.get(name)
            if chosen is not None:
                counts.setdefault(chosen, 0)
            chips = [
                Chip(
                    label,
                    self._link(others if label == chosen else {**others, name: label}),
                    count,
                    label == chosen,
                )
                for label, count in sorted(counts.items())
            ]
            if chips:
                facets.append(Facet(name, chips))
        return facets

    def _fitting(self, voices: Iterable[Labelled], wanted: Mapping[str, str]) -> list[Labelled]:
        text = self.text.casefold()
        return [
            each
            for each in voices
            if wanted.items() <= each.labels.items()
            and any(text in word.casefold() for word in (each.name, *each.labels.values()))
        ]

    def _link(self, wanted: Mapping[str, str]) -> str:
        words = {"q": self.text} if self.text else {}
        return "?" + urlencode({**self.kept, **words, **wanted})
