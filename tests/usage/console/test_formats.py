"""The one rule by which console and admin show numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from usage.templatetags import formats


@pytest.mark.parametrize(
    ("cost", "total", "single"),
    [
        ("0", "0.00", "0"),
        ("0.00000000000001", "<0.01", "0.00000000000001"),
        ("0.0000225", "<0.01", "0.0000225"),
        ("0.00054449", "<0.01", "0.0005445"),
        ("0.0073100", "<0.01", "0.00731"),
        ("0.00999999", "<0.01", "0.01"),
        ("0.01", "0.01", "0.01"),
        ("0.5", "0.50", "0.5"),
        ("9.405", "9.41", "9.405"),
        ("12.34567", "12.35", "12.35"),
        ("1234567.891", "1,234,567.89", "1,234,567.89"),
    ],
)
def test_costs(cost: str, total: str, single: str) -> None:
    assert formats.total_text(Decimal(cost)) == total
    assert formats.single_text(Decimal(cost)) == single


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999_999, "999,999"),
        (1_000_000, "1.00 M"),
        (27_832_000, "27.8 M"),
        (278_321_000, "278 M"),
        (2_783_210_000, "2,783 M"),
    ],
)
def test_tokens(count: int, text: str) -> None:
    assert formats.tokens_text(count) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (23_456, "23.5 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min 0 s"),
        (64_000, "1 min 4 s"),
        (3_599_499, "59 min 59 s"),
        (3_720_000, "1 h 2 min"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert formats.duration(milliseconds) == text


def test_a_rounded_figure_opens_to_the_exact_one_and_an_exact_one_does_not_open() -> None:
    opens = formats.total(Decimal("9.405"), "USD")

    assert "<summary>9.41 USD</summary>" in opens
    assert '<span class="whole">9.40500000000000 USD</span>' in opens
    assert formats.single("0.0000225", "<b>").count("&lt;b&gt;") == 2
    assert formats.total(Decimal(0), "USD") == "0.00 USD"
    assert formats.tokens(999_999) == "999,999"
