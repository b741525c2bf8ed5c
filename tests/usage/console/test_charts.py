"""The chart: its bars show the usage in proportion, in few series and with every request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usage.console.charts import PLOT_HEIGHT, Metric, drawn_bucket, stacked
from usage.queries.periods import Bucket, Period
from usage.queries.series import Point

START = datetime(2026, 11, 1, tzinfo=UTC)
WEEK = Period(START, START + timedelta(days=7))


def point(day: int, model: str, requests: int, cost: str = "0") -> Point:
    return Point(START + timedelta(days=day), model, "USD", requests, 0, 0, Decimal(cost))


def test_bars_are_in_proportion_and_stand_on_each_other() -> None:
    chart = stacked(
        [point(0, "big", 30), point(0, "small", 10), point(2, "big", 20)],
        WEEK,
        Bucket.DAY,
        Metric.REQUESTS,
        "requests",
    )

    first, last = chart.bars
    (big, small), (later,) = first.segments, last.segments
    assert float(big.height) == pytest.approx(3 * float(small.height), abs=0.02)
    assert float(later.height) == pytest.approx(2 * float(small.height), abs=0.02)
    assert float(big.y) + float(big.height) == pytest.approx(PLOT_HEIGHT, abs=0.02)
    assert float(small.y) + float(small.height) == pytest.approx(float(big.y), abs=0.02)
    assert big.x == small.x != later.x
    assert first.title == "1 Nov 2026: 40 requests\nbig: 30\nsmall: 10"
    assert [entry.name for entry in chart.legend] == ["big", "small"]


def test_the_scale_goes_from_zero_to_above_the_highest_bar() -> None:
    chart = stacked([point(0, "m", 114)], WEEK, Bucket.DAY, Metric.REQUESTS, "requests")

    assert [tick.text for tick in chart.ticks] == ["0", "25", "50", "75", "100", "125"]
    assert chart.ticks[0].y == f"{PLOT_HEIGHT:.2f}"
    assert chart.ticks[-1].y == "0.00"


def test_the_numbers_of_a_scale_have_as_many_decimals() -> None:
    chart = stacked([point(0, "m", 1, "1.14")], WEEK, Bucket.DAY, Metric.COST, "USD")
    assert [tick.text for tick in chart.ticks] == ["0", "0.25", "0.50", "0.75", "1.00", "1.25"]

    chart = stacked([point(0, "m", 1900)], WEEK, Bucket.DAY, Metric.REQUESTS, "requests")
    assert [tick.text for tick in chart.ticks] == ["0", "500", "1.0K", "1.5K", "2.0K"]


def test_costs_far_below_a_cent_have_a_scale_too() -> None:
    chart = stacked([point(0, "m", 1, "0.00000114")], WEEK, Bucket.DAY, Metric.COST, "USD")

    assert chart.ticks[-1].text == "0.00000125"
    assert chart.bars[0].title == "1 Nov 2026: <0.01 USD\nm: <0.01"
    assert chart.table[0].total.exact == "0.00000114000000"


def test_of_more_than_eight_series_the_smallest_are_other() -> None:
    def drawn(count: int) -> list[str]:
        points = [point(0, f"model-{number}", 10 - number) for number in range(count)]
        chart = stacked(points, WEEK, Bucket.DAY, Metric.REQUESTS, "requests")
        assert chart.table[0].total.text == str(sum(10 - number for number in range(count)))
        assert len({entry.colour for entry in chart.legend}) == len(chart.legend)
        return [entry.name for entry in chart.legend]

    assert drawn(8) == [f"model-{number}" for number in range(8)]
    assert drawn(9) == [*(f"model-{number}" for number in range(7)), "Other (2)"]


def test_a_series_keeps_its_colour_whatever_its_rank() -> None:
    """Of cost and of tokens, of this month and of last."""
    names = [f"acme/model-{number}" for number in range(5)]

    def colours(order: list[str]) -> dict[str, str]:
        points = [point(0, name, 10 - place) for place, name in enumerate(order)]
        chart = stacked(points, WEEK, Bucket.DAY, Metric.REQUESTS, "requests")
        return {entry.name: entry.colour for entry in chart.legend}

    assert colours(names) == colours(names[::-1])


@given(
    st.lists(
        st.tuples(
            st.integers(0, 6),
            st.sampled_from([f"model-{number}" for number in range(9)]),
            st.integers(1, 10**12),
        ),
        min_size=1,
        max_size=40,
        unique_by=lambda each: each[:2],
    )
)
def test_every_bar_is_inside_the_plot_and_the_table_has_every_request(
    drawn: list[tuple[int, str, int]],
) -> None:
    chart = stacked([point(*each) for each in drawn], WEEK, Bucket.DAY, Metric.REQUESTS, "requests")

    for segment in (each for bar in chart.bars for each in bar.segments):
        assert float(segment.y) >= -0.01
        assert float(segment.y) + float(segment.height) <= PLOT_HEIGHT + 0.02
        assert 0 <= float(segment.x[:-1]) <= 100 - float(segment.width[:-1])
    table = [int(row.total.text.replace(",", "")) for row in chart.table]
    assert sum(table) == sum(requests for *_, requests in drawn)


def test_more_hours_than_fit_are_drawn_as_days() -> None:
    assert drawn_bucket(WEEK, Bucket.HOUR) is Bucket.HOUR
    assert drawn_bucket(Period(START, START + timedelta(days=31)), Bucket.HOUR) is Bucket.DAY


def test_labels_of_hours_carry_the_day_at_midnight() -> None:
    two_days = Period(START, START + timedelta(days=2))

    chart = stacked([point(0, "m", 1)], two_days, Bucket.HOUR, Metric.REQUESTS, "requests")

    first = [label.text for label in chart.labels][:5]
    assert first == ["1 Nov", "06:00", "12:00", "18:00", "2 Nov"]
