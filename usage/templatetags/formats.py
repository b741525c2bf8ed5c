"""How the console and the admin show numbers, moments and durations to people.

One rule for money: a total has two decimals, the cost of a single request four significant digits.
A written-out sum, a receipt and a download are exact. What is rounded opens to the exact figure.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from operator import attrgetter
from typing import Any, Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from accounts.console.display_zone import DEFAULT, localized, shown_zone
from core.clock import iso_milliseconds
from core.money import cost_text

register = template.Library()


@register.filter
def figure(number: int | None) -> str:
    """``1,234,567``; a dash for None."""
    return "–" if number is None else f"{number:,}"  # noqa: RUF001  # a dash in a table's cell


@register.filter
def percent(share: float | None) -> str:
    """``37.5 %`` of a share from 0 to 1; a dash for None."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")  # noqa: RUF001


_CENT: Final = Decimal("0.01")
_FULL_UP_TO: Final = 999_999
"""The largest token count that is shown in full."""


def total_text(cost: Decimal) -> str:
    """A total: ``1,234.57``, rounded half up; ``<0.01`` for less than that, but not for nothing."""
    if 0 < cost < _CENT:
        return f"<{_CENT}"
    return f"{cost.quantize(_CENT, rounding=ROUND_HALF_UP):,f}"


def single_text(cost: Decimal) -> str:
    """The cost of one request: four significant digits, but never less than two decimals.

    Zeros at the end are left out: ``0.0000225``, ``0.00731``, ``0.5``, ``12.35``, ``0``.
    """
    decimals = max(2, 3 - cost.adjusted())
    shown = cost.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)
    whole, _, fraction = f"{shown:,f}".partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def tokens_text(count: int) -> str:
    """``999,999``, and of a million and more three significant digits: ``1.23 M``, ``27.8 M``."""
    if count <= _FULL_UP_TO:
        return f"{count:,}"
    decimals = max(0, 2 - (len(str(count // 1_000_000)) - 1))
    shown = (Decimal(count) / 1_000_000).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    return f"{shown:,f} M"


@register.simple_tag
def exactly(text: str, exact: str) -> str:
    """``text``, which opens to ``exact`` by pointer, key or touch, without a script."""
    if text == exact:
        return text
    # Not by format_html, which takes ten times as long: some pages have a thousand.
    return SafeString(
        f'<details class="rounded"><summary>{html.escape(text)}</summary>'
        f'<span class="whole">{html.escape(exact)}</span>'
        '<button type="button" class="quiet" data-copies="" hidden>Copy</button></details>'
    )


def _cost(text: str, cost: Decimal, currency: str) -> str:
    unit = f" {currency}" if currency else ""
    return exactly(f"{text}{unit}", f"{cost_text(cost)}{unit}") if cost else f"{text}{unit}"


@register.simple_tag
def total(cost: Decimal | str, currency: str = "") -> str:
    """A total, which opens to its exact figure. Without ``currency`` where a column's head has it."""
    return _cost(total_text(Decimal(cost)), Decimal(cost), currency)


@register.simple_tag
def single(cost: Decimal | str, currency: str = "") -> str:
    """The cost of one request, which opens to its exact figure."""
    return _cost(single_text(Decimal(cost)), Decimal(cost), currency)


@register.simple_tag
def tokens(count: int) -> str:
    """A token count, which opens to its exact figure from a million on."""
    return exactly(tokens_text(count), f"{count:,}")


@register.filter
def only(lines: Iterable[Any], name: str) -> str:
    """What all ``lines`` have as ``name``, such as a currency; an empty string if they differ."""
    found = set(filter(None, map(attrgetter(name), lines)))
    return str(found.pop()) if len(found) == 1 else ""


@register.filter
def moment(time: datetime) -> str:
    """``20 Nov 2026, 10:17:20``, in the person's time zone, which every page names once."""
    return f"{localized(time):%-d %b %Y, %H:%M:%S}"


@register.filter
def zoned(time: datetime) -> str:
    """``20 Nov 2026, 15:47:20 UTC+05:30``: a moment with its distance from UTC."""
    distance = localized(time).isoformat(timespec="minutes")[-6:]
    return f"{moment(time)} UTC{'' if distance == '+00:00' else distance}"


@register.simple_tag
def zone_note() -> str:
    """Name the zone of the page's times."""
    zone = shown_zone()
    if zone == DEFAULT:
        return "All times UTC"
    return f"Times in {zone.replace('_', ' ')}, days in UTC"


@register.filter
def day(time: datetime) -> str:
    """``20 Nov 2026``, the day in UTC."""
    return f"{time.astimezone(UTC):%-d %b %Y}"


@register.filter
def exact(time: datetime) -> str:
    """In the API's form: ISO 8601, UTC, milliseconds."""
    return iso_milliseconds(time)


@register.filter
def duration(milliseconds: int) -> str:
    """``782 ms``, ``23.5 s``, ``1 min 4 s`` or ``1 h 2 min``, each rounded half up."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if (tenths := (milliseconds + 50) // 100) < 600:
        return f"{tenths / 10:.1f} s"
    seconds = (milliseconds + 500) // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = (seconds + 30) // 60
    return f"{minutes // 60:,} h {minutes % 60} min"


@register.filter
def duration_or_dash(milliseconds: int | str | None) -> str:
    """A duration; a dash where there is none, also of an absent object."""
    return duration(milliseconds) if isinstance(milliseconds, int) else "–"  # noqa: RUF001


@register.filter
def words(text: str) -> list[str]:
    """The words of ``text``, for a loop."""
    return text.split()


@register.filter
def coded(text: str) -> SafeString:
    """``text`` with what stands between backticks as code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))  # noqa: S308  # escaped
