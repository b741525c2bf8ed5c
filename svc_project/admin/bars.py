"""Bars over time on pages of the admin, drawn by the browser from what the server has counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HEIGHT: Final = 80


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: ``x`` and ``width`` are percent of the chart, ``y`` and ``height`` pixels."""

    title: str
    x: float
    width: float
    y: float
    height: float


def bars(values: Sequence[tuple[str, float]]) -> list[Bar]:
    """A bar for each of ``values``, titles with numbers, in order; the highest is ``HEIGHT`` high."""
    most = max((number for _, number in values), default=0.0)
    step = 100 / len(values) if values else 0.0
    made = []
    for place, (title, number) in enumerate(values):
        height = HEIGHT * number / most if most else 0.0
        made.append(Bar(title, place * step, step * 0.8, HEIGHT - height, height))
    return made
