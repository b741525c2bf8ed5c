"""Template filters that format numbers for people; exact ones are in titles, tables and downloads."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from accounts.console.display_zone import DEFAULT, localized, shown_zone
from core.clock import iso_milliseconds

register = template.Library()


@register.filter
def figure(number: int | None) -> str:
    """``1,234,567``; a dash for None."""
    return "–" if number is None else f"{number:,}"  # noqa: RUF001  # a dash in a table's cell


@register.filter
def percent(share: float | None) -> str:
    """``37.5 %`` of a share from 0 to 1; a dash for None."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")  # noqa: RUF001


@register.filter
def rounded(cost: Decimal | str, places: int) -> str:
    """A cost rounded half up for display; a cost that would round to zero is ``<0.01``."""
    cost = Decimal(cost)
    shown = cost.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    if cost and not shown:
        return f"<{Decimal(1).scaleb(-places):f}"
    return f"{shown:,f}"


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
    """``840 ms`` or ``12.35 s``."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.2f} s"


@register.filter
def duration_or_dash(milliseconds: int | str | None) -> str:
    """A duration; a dash where there is none, also of an absent object."""
    return duration(milliseconds) if isinstance(milliseconds, int) else "–"  # noqa: RUF001


@register.filter
def playing_time(milliseconds: int) -> str:
    """The duration of audio: ``8.4 s``, ``3 min 20 s`` or ``1 h 2 min``; rounded down."""
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{milliseconds // 100 / 10} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600:,} h {seconds // 60 % 60} min"


@register.filter
def words(text: str) -> list[str]:
    """The words of ``text``, for a loop."""
    return text.split()


@register.filter
def coded(text: str) -> SafeString:
    """``text`` with what stands between backticks as code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))  # noqa: S308  # escaped
