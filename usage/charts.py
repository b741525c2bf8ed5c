"""Stacked bars over time, as numbers that a template draws as SVG.

Across, everything is in per cent of the plot; up and down, in pixels of a plot of fixed height:
so a chart fits every width and its letters keep their size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

from svc_project.lib.money import cost_text
from usage.periods import Bucket, Period
from usage.series import Point, bucket_start

TOP = 6
"""So many models have a colour of their own; the rest are one, "Other"."""
PLOT_HEIGHT = 240
MOST_BUCKETS = 200
"""More bars than this would be too thin to see: hours are then drawn as days."""
_BAR_SHARE = 0.74
_WIDEST_BAR = 7.0
_MOST_LABELS = 10
_ZERO = Decimal(0)
_ROUND = tuple(Decimal(each) for each in ("1", "2", "2.5", "5", "10"))
_STEPS = {Bucket.HOUR: timedelta(hours=1), Bucket.DAY: timedelta(days=1)}


class Metric(StrEnum):
    COST = "cost"
    TOKENS = "tokens"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Segment:
    """One model's part of one bar; ``x`` and ``width`` in per cent, the others in pixels."""

    x: str
    y: str
    width: str
    height: str
    colour: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the scale, in pixels from the top."""

    y: str
    text: str


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """A name under a bar; a ``minor`` one is left out on narrow screens."""

    x: str
    text: str
    minor: bool


@dataclass(frozen=True, slots=True)
class LegendEntry:
    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """One bucket in the chart's twin, a table."""

    bucket: str
    cells: tuple[str, ...]
    total: str


@dataclass(frozen=True, slots=True)
class Chart:
    bucket: Bucket
    segments: tuple[Segment, ...]
    ticks: tuple[Tick, ...]
    labels: tuple[TimeLabel, ...]
    legend: tuple[LegendEntry, ...]
    table: tuple[TableRow, ...]
    height: int = PLOT_HEIGHT


@dataclass(frozen=True, slots=True)
class _Stacks:
    """The values of each bucket, one for each of ``legend``; buckets without any are left out."""

    legend: tuple[LegendEntry, ...]
    values: Mapping[datetime, list[Decimal]]


def drawn_bucket(period: Period, bucket: Bucket) -> Bucket:
    """The bucket that a chart of ``period`` has room for."""
    hours = (period.end - period.start) / _STEPS[Bucket.HOUR]
    return Bucket.DAY if hours > MOST_BUCKETS else bucket


def bucket_text(start: datetime, bucket: Bucket) -> str:
    """``20 Nov 2026``, or ``20 Nov 2026, 10:00``."""
    return f"{start:%-d %b %Y}" if bucket is Bucket.DAY else f"{start:%-d %b %Y, %H:%M}"


def stacked(
    points: Sequence[Point], period: Period, bucket: Bucket, metric: Metric, unit: str
) -> Chart:
    """The chart of ``points``, which are of ``bucket`` and, for costs, of one currency.

    ``unit`` follows every figure in the titles ("tokens", "USD").
    """

    def words(start: datetime, entry: LegendEntry, value: Decimal) -> str:
        return f"{bucket_text(start, bucket)}, {entry.name}: {_amount(value, metric)} {unit}"

    stacks = _stacks(points, metric)
    scale = _scale(max((sum(each, _ZERO) for each in stacks.values.values()), default=_ZERO))
    starts = list(_starts(period, bucket))
    return Chart(
        bucket,
        segments=tuple(_segments(stacks, starts, scale[-1], words)),
        ticks=tuple(Tick(_pixels(1 - value / scale[-1]), _short(value)) for value in scale),
        labels=tuple(_labels(starts, bucket)),
        legend=stacks.legend,
        table=tuple(
            TableRow(
                bucket_text(start, bucket),
                tuple(_amount(value, metric) for value in values),
                _amount(sum(values, _ZERO), metric),
            )
            for start, values in sorted(stacks.values.items())
        ),
    )


def _stacks(points: Sequence[Point], metric: Metric) -> _Stacks:
    """``points`` by bucket, the models ordered by their sums, those beyond ``TOP`` folded."""
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for point in points:
        sums[point.model_identifier] += _value(point, metric)
    ranked = sorted(sums, key=lambda model: (-sums[model], model))
    places = {model: min(place, TOP) for place, model in enumerate(ranked)}
    legend = [LegendEntry(model, f"series-{place + 1}") for place, model in enumerate(ranked[:TOP])]
    if len(ranked) > TOP:
        legend.append(LegendEntry(f"Other ({len(ranked) - TOP} models)", "series-other"))
    values: dict[datetime, list[Decimal]] = {}
    for point in points:
        stack = values.setdefault(point.bucket_start, [_ZERO] * len(legend))
        stack[places[point.model_identifier]] += _value(point, metric)
    return _Stacks(tuple(legend), values)


def _segments(
    stacks: _Stacks,
    starts: Sequence[datetime],
    top: Decimal,
    words: Callable[[datetime, LegendEntry, Decimal], str],
) -> Iterator[Segment]:
    """The bars from left to right, each from the ground up."""
    slot = 100 / len(starts)
    width = min(slot * _BAR_SHARE, _WIDEST_BAR)
    for index, start in enumerate(starts):
        below = _ZERO
        x = f"{slot * (index + 0.5) - width / 2:.3f}%"
        for entry, value in zip(stacks.legend, stacks.values.get(start, ()), strict=False):
            if value:
                below += value
                yield Segment(
                    x,
                    _pixels(1 - below / top),
                    f"{width:.3f}%",
                    _pixels(value / top),
                    entry.colour,
                    words(start, entry, value),
                )


def _value(point: Point, metric: Metric) -> Decimal:
    if metric is Metric.COST:
        return point.cost
    if metric is Metric.REQUESTS:
        return Decimal(point.requests)
    return Decimal(point.input_tokens + point.output_tokens)


def _amount(value: Decimal, metric: Metric) -> str:
    return cost_text(value) if metric is Metric.COST else f"{value:,}"


def _pixels(share: Decimal) -> str:
    return f"{share * PLOT_HEIGHT:.2f}"


def _scale(highest: Decimal) -> list[Decimal]:
    """Round values from zero to ``highest`` or just above it, four to six of them."""
    if not highest:
        return [_ZERO, Decimal(1)]
    rough = highest / 5
    power = Decimal(1).scaleb(rough.adjusted())
    step = next(each * power for each in _ROUND if each * power >= rough)
    lines = int((highest / step).to_integral_value(ROUND_CEILING))
    return [step * line for line in range(lines + 1)]


def _short(value: Decimal) -> str:
    """``0``, ``0.25``, ``40K``, ``1.5M``: a name for a line of the scale."""
    for power, letter in ((9, "B"), (6, "M"), (3, "K")):
        if value >= Decimal(1).scaleb(power):
            return f"{_plain(value.scaleb(-power))}{letter}"
    return _plain(value)


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _starts(period: Period, bucket: Bucket) -> Iterator[datetime]:
    first = bucket_start(period.start, bucket)
    for number in range(-((first - period.end) // _STEPS[bucket])):
        yield first + number * _STEPS[bucket]


def _labels(starts: Sequence[datetime], bucket: Bucket) -> Iterator[TimeLabel]:
    """Names of evenly spaced buckets; among hours, midnight carries the day."""
    step = -(-len(starts) // _MOST_LABELS)
    if bucket is Bucket.HOUR:
        step = next(each for each in (1, 2, 3, 6, 12, 24) if each >= step)
    place = 0
    for index, start in enumerate(starts):
        if (start.hour if bucket is Bucket.HOUR else index) % step:
            continue
        hour = bucket is Bucket.HOUR and start.hour
        text = f"{start:%H:%M}" if hour else f"{start:%-d %b}"
        yield TimeLabel(f"{(index + 0.5) * 100 / len(starts):.3f}%", text, bool(place % 2))
        place += 1
