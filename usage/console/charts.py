"""Stacked bars over time, as numbers that a template draws as SVG.

Horizontal positions are in per cent of the plot, vertical ones in pixels of a plot of fixed height:
so a chart fits every width and its text keeps its size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Generic, Protocol, TypeVar
from zlib import crc32

import msgspec

from core import clock
from core.money import cost_text
from usage.queries.periods import Bucket, Period
from usage.queries.series import Point, bucket_start
from usage.queries.sums import CacheSums
from usage.templatetags.formats import percent, tokens_text, total_text

COLOURS = 8
"""So many series have a colour of their own; with more, all but the largest 7 are "Other"."""
PLOT_HEIGHT = 240
MOST_BUCKETS = 200
"""More bars than this would be too thin: hours are then drawn as days."""
_BAR_SHARE = 0.74
_WIDEST_BAR = 7.0
_MOST_LABELS = 10
_ZERO = Decimal(0)
_ROUND = tuple(Decimal(each) for each in ("1", "2", "2.5", "5", "10"))
_STEPS = {Bucket.HOUR: timedelta(hours=1), Bucket.DAY: timedelta(days=1)}


class Metric(StrEnum):
    """What the bars of chats show."""

    COST = "cost"
    TOKENS = "tokens"
    REQUESTS = "requests"


class Stackable(Protocol):
    """One series in one bucket."""

    @property
    def bucket_start(self) -> datetime: ...
    @property
    def name(self) -> str: ...


P = TypeVar("P", bound=Stackable)


class Segment(msgspec.Struct, frozen=True):
    """One series' part of one bar; ``x`` and ``width`` in per cent, the others in pixels."""

    x: str
    y: str
    width: str
    height: str
    colour: str


class Bar(msgspec.Struct, frozen=True):
    """One bucket; ``title`` has the total and then a line for each part, ``link`` leads to it."""

    x: str
    width: str
    title: str
    link: str
    segments: tuple[Segment, ...]
    unfinished: bool
    """Whether the bucket has not ended yet."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the scale, in pixels from the top."""

    y: str
    text: str


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """A label under a bar; a ``minor`` one is hidden on narrow screens."""

    x: str
    text: str
    minor: bool


@dataclass(frozen=True, slots=True)
class LegendEntry:
    name: str
    colour: str


class Cell(msgspec.Struct, frozen=True):
    """A number rounded for reading, and exact."""

    text: str
    exact: str


@dataclass(frozen=True, slots=True)
class Measure(Generic[P]):
    """What bars show: the value of a point, and how values are written; ``unit`` names them."""

    unit: str
    value: Callable[[P], Decimal]
    cell: Callable[[Decimal], Cell]


class TableRow(msgspec.Struct, frozen=True):
    """One bucket in the table that accompanies the chart."""

    bucket: str
    total: Cell
    cells: tuple[Cell, ...]
    cached: Cell
    """The share of the prompt tokens that servers had cached; a dash where none reported it."""


@dataclass(frozen=True, slots=True)
class Chart:
    bucket: Bucket
    unit: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    labels: tuple[TimeLabel, ...]
    legend: tuple[LegendEntry, ...]
    table: tuple[TableRow, ...]
    has_cache: bool
    """Whether a server reported cached tokens for any of it."""
    height: int = PLOT_HEIGHT


@dataclass(frozen=True, slots=True)
class _Stacks:
    """The values of each bucket, one per entry of ``legend``; empty buckets are left out."""

    legend: tuple[LegendEntry, ...]
    values: Mapping[datetime, list[Decimal]]


class _Caption(msgspec.Struct, frozen=True):
    """What a bar has besides its shape."""

    title: str
    link: str
    unfinished: bool


def drawn_bucket(period: Period, bucket: Bucket) -> Bucket:
    """The smallest bucket that a chart of ``period`` has room for."""
    hours = (period.end - period.start) / _STEPS[Bucket.HOUR]
    return Bucket.DAY if hours > MOST_BUCKETS else bucket


def bucket_text(start: datetime, bucket: Bucket) -> str:
    """``20 Nov 2026``, or ``20 Nov 2026, 10:00``."""
    return f"{start:%-d %b %Y}" if bucket is Bucket.DAY else f"{start:%-d %b %Y, %H:%M}"


def stacked(
    points: Sequence[Point],
    period: Period,
    bucket: Bucket,
    metric: Metric,
    unit: str,
    link_to: Callable[[datetime], str] = lambda _: "",
) -> Chart:
    """Return the chart of chats' ``points``, which are of ``bucket`` and, for costs, of one currency.

    ``unit`` names the numbers ("tokens", "USD"). Otherwise as ``measured``.
    """
    measure: Measure[Point] = Measure(
        unit, lambda point: _value(point, metric), lambda value: _cell(value, metric)
    )
    return measured(points, period, bucket, measure, link_to, _caches(points))


def measured(
    points: Sequence[P],
    period: Period,
    bucket: Bucket,
    measure: Measure[P],
    link_to: Callable[[datetime], str] = lambda _: "",
    caches: Mapping[datetime, CacheSums] | None = None,
) -> Chart:
    """Return the chart of ``points``, which are of ``bucket``.

    ``link_to`` returns the address that the bar of a bucket leads to, given its start; ``caches`` are
    what servers had cached of the prompts of each bucket.
    """
    stacks = _stacks(points, measure)
    caches = caches or {}
    scale = _scale(max((sum(each, _ZERO) for each in stacks.values.values()), default=_ZERO))
    starts = list(starts_of(period, bucket))
    running = bucket_start(clock.now(), bucket)
    table = tuple(
        TableRow(
            f"{bucket_text(start, bucket)}{', so far' if start == running else ''}",
            measure.cell(sum(values, _ZERO)),
            tuple(map(measure.cell, values)),
            _cached(caches.get(start, CacheSums(0, 0))),
        )
        for start, values in sorted(stacks.values.items())
    )
    titles = zip(sorted(stacks.values), _titles(table, stacks.legend, measure.unit), strict=True)
    captions = {start: _Caption(title, link_to(start), start == running) for start, title in titles}
    return Chart(
        bucket,
        measure.unit,
        bars=tuple(_bars(stacks, starts, scale[-1], captions)),
        ticks=tuple(_ticks(scale)),
        labels=tuple(labels_of(starts, bucket)),
        legend=stacks.legend,
        table=table,
        has_cache=any(each.reported for each in caches.values()),
    )


def _cell(value: Decimal, metric: Metric) -> Cell:
    if metric is Metric.COST:
        return Cell(total_text(value), cost_text(value) if value else total_text(value))
    exact = f"{value:,}"
    return Cell(tokens_text(int(value)) if metric is Metric.TOKENS else exact, exact)


def _caches(points: Sequence[Point]) -> dict[datetime, CacheSums]:
    """What servers had cached of the prompts of each bucket."""
    start_of = attrgetter("bucket_start")
    return {
        start: CacheSums.of(group)
        for start, group in groupby(sorted(points, key=start_of), start_of)
    }


def _cached(cache: CacheSums) -> Cell:
    return Cell(
        percent(cache.share),
        cache.text if cache.reported else percent(cache.share),
    )


def _stacks(points: Sequence[P], measure: Measure[P]) -> _Stacks:
    """Group ``points`` by bucket, the series ordered by their sums, the smallest combined."""
    measured_points = [(point.bucket_start, point.name, measure.value(point)) for point in points]
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for _, name, value in measured_points:
        sums[name] += value
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    own = len(ranked) if len(ranked) <= COLOURS else COLOURS - 1
    places = {name: min(place, own) for place, name in enumerate(ranked)}
    colours = _colours(ranked[:own])
    legend = [LegendEntry(name, colours[name]) for name in ranked[:own]]
    if len(ranked) > own:
        legend.append(LegendEntry(f"Other ({len(ranked) - own})", "series-other"))
    values: dict[datetime, list[Decimal]] = {}
    for start, name, value in measured_points:
        if start not in values:
            values[start] = [_ZERO] * len(legend)
        values[start][places[name]] += value
    return _Stacks(tuple(legend), values)


def _colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name, by its checksum, so that a series keeps it on every chart.

    Of two names with one checksum the alphabetically later one takes the next free colour.
    """
    taken: dict[int, str] = {}
    for name in sorted(names):
        place = crc32(name.encode()) % COLOURS
        while place in taken:
            place = (place + 1) % COLOURS
        taken[place] = name
    return {name: f"series-{place + 1}" for place, name in taken.items()}


def _titles(table: Sequence[TableRow], legend: Sequence[LegendEntry], unit: str) -> Iterator[str]:
    for row in table:
        parts = [
            f"{entry.name}: {cell.text}"
            for entry, cell in zip(legend, row.cells, strict=True)
            if cell.text.strip("0.")
        ]
        one = unit.removesuffix("s") if row.total.text == "1" else unit
        yield "\n".join([f"{row.bucket}: {row.total.text} {one}", *parts])


def _bars(
    stacks: _Stacks,
    starts: Sequence[datetime],
    top: Decimal,
    captions: Mapping[datetime, _Caption],
) -> Iterator[Bar]:
    """Yield the bars from left to right, each from the bottom up."""
    slot = 100 / len(starts)
    width = min(slot * _BAR_SHARE, _WIDEST_BAR)
    for index, start in enumerate(starts):
        if start not in stacks.values:
            continue
        x, bar_width = f"{slot * (index + 0.5) - width / 2:.3f}%", f"{width:.3f}%"
        segments = []
        below = _ZERO
        for entry, value in zip(stacks.legend, stacks.values[start], strict=True):
            if value:
                below += value
                y, height = _pixels(1 - below / top), _pixels(value / top)
                segments.append(Segment(x, y, bar_width, height, entry.colour))
        caption = captions[start]
        yield Bar(x, bar_width, caption.title, caption.link, tuple(segments), caption.unfinished)


def _value(point: Point, metric: Metric) -> Decimal:
    if metric is Metric.COST:
        return point.cost
    if metric is Metric.REQUESTS:
        return Decimal(point.requests)
    return Decimal(point.input_tokens + point.output_tokens)


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


def _ticks(scale: Sequence[Decimal]) -> Iterator[Tick]:
    for value, text in zip(scale, _scale_texts(scale), strict=True):
        yield Tick(_pixels(1 - value / scale[-1]), text)


def _scale_texts(scale: Sequence[Decimal]) -> list[str]:
    """``0``, ``0.25``, ``0.50``; ``0``, ``40K``, ``1.5M``, ``2.0M``: as many decimals with one letter."""
    shown = [_short(value) for value in scale]
    decimals: defaultdict[str, int] = defaultdict(int)
    for value, letter in shown:
        decimals[letter] = max(decimals[letter], len(f"{value:f}".partition(".")[2]))
    return [f"{value:.{decimals[letter]}f}{letter}" if value else "0" for value, letter in shown]


def _short(value: Decimal) -> tuple[Decimal, str]:
    """1.5 and ``M`` of 1,500,000; no letter below a thousand."""
    for power, letter in ((9, "B"), (6, "M"), (3, "K")):
        if value >= Decimal(1).scaleb(power):
            return value.scaleb(-power).normalize(), letter
    return value.normalize(), ""


def starts_of(period: Period, bucket: Bucket) -> Iterator[datetime]:
    """Yield the beginnings of the buckets that ``period`` touches."""
    first = bucket_start(period.start, bucket)
    for number in range(-((first - period.end) // _STEPS[bucket])):
        yield first + number * _STEPS[bucket]


def labels_of(starts: Sequence[datetime], bucket: Bucket) -> Iterator[TimeLabel]:
    """Labels of evenly spaced buckets; among hours, midnight shows the day."""
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
