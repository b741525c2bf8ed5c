"""Small charts of failures and of the 95th percentile over time, as numbers that a template draws as SVG.

Horizontal positions are in per cent, vertical ones in pixels, as in ``usage.console.charts``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from usage.console.charts import TimeLabel, bucket_text, labels_of, starts_of
from usage.queries.health import Latency
from usage.queries.outcomes import Endings
from usage.queries.periods import Bucket, Period
from usage.templatetags.formats import duration

HEIGHT: Final = 56
_SHARE: Final = 0.74
_LEAST: Final = 2.0
"""The height of the smallest bar: one failure among thousands is seen."""


class SparkBar(msgspec.Struct, frozen=True):
    """One bucket; ``x`` and ``width`` in per cent, the others in pixels."""

    x: str
    y: str
    width: str
    height: str
    title: str


@dataclass(frozen=True, slots=True)
class Spark:
    """The bars of one measure. ``highest``: the largest value, as text; empty without any."""

    name: str
    colour: str
    highest: str
    bars: tuple[SparkBar, ...]
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class EndingsRow:
    """One bucket in the table beside the charts."""

    bucket: str
    endings: Endings


@dataclass(frozen=True, slots=True)
class EndingsChart:
    """Failures and times over time; ``labels`` stand below each of ``sparks``."""

    bucket: Bucket
    sparks: tuple[Spark, ...]
    labels: tuple[TimeLabel, ...]
    table: tuple[EndingsRow, ...]


def endings_chart(
    endings: Mapping[datetime, Endings], period: Period, bucket: Bucket
) -> EndingsChart | None:
    """The charts of ``endings``, which are of ``bucket``; None where nothing ended."""
    if not any(each.requests for each in endings.values()):
        return None
    starts = list(starts_of(period, bucket))
    texts = {start: bucket_text(start, bucket) for start in endings}

    def spark(
        name: str,
        colour: str,
        value: Callable[[Endings], float],
        text: Callable[[Endings], str],
        highest: Callable[[float], str],
    ) -> Spark:
        values = {start: value(each) for start, each in endings.items()}
        top = max(values.values())
        titles = {start: f"{texts[start]}: {text(each)}" for start, each in endings.items()}
        bars = tuple(_bars(starts, values, titles, top)) if top else ()
        return Spark(name, colour, highest(top) if top else "", bars)

    return EndingsChart(
        bucket,
        (
            spark("Failed", "failed", lambda each: each.failed, _failures, lambda top: f"{top:,}"),
            spark("p95 to the first token", "series-1", _p95_first, _first_text, _milliseconds),
            spark("p95 of the duration", "series-2", _p95_whole, _whole_text, _milliseconds),
        ),
        # The outermost would reach into the chart beside it.
        tuple(labels_of(starts, bucket))[1:-1],
        tuple(EndingsRow(texts[start], each) for start, each in endings.items()),
    )


def _bars(
    starts: Sequence[datetime],
    values: Mapping[datetime, float],
    titles: Mapping[datetime, str],
    top: float,
) -> list[SparkBar]:
    slot = 100 / len(starts)
    bars = []
    for index, start in enumerate(starts):
        if value := values.get(start, 0):
            height = max(_LEAST, HEIGHT * value / top)
            x = slot * (index + (1 - _SHARE) / 2)
            bars.append(
                SparkBar(
                    f"{x:.3f}%",
                    f"{HEIGHT - height:.2f}",
                    f"{slot * _SHARE:.3f}%",
                    f"{height:.2f}",
                    titles[start],
                )
            )
    return bars


def _failures(each: Endings) -> str:
    return f"{each.failed:,} of {each.requests:,} failed ({each.failed_percent:.1f} %)"


def _p95(latency: Latency | None) -> int:
    return 0 if latency is None else latency.p95


def _p95_first(each: Endings) -> float:
    return _p95(each.first_token)


def _p95_whole(each: Endings) -> float:
    return _p95(each.duration)


def _first_text(each: Endings) -> str:
    return f"first token, p95 {duration(_p95(each.first_token))}"


def _whole_text(each: Endings) -> str:
    return f"duration, p95 {duration(_p95(each.duration))}"


def _milliseconds(top: float) -> str:
    return duration(round(top))
