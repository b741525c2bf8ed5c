"""Figures as people read them; the exact ones stay in titles, tables and downloads."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from django import template

from svc_project.lib.clock import iso_milliseconds

register = template.Library()


@register.filter
def figure(number: int | None) -> str:
    """``1,234,567``; a dash for a figure that does not exist."""
    return "–" if number is None else f"{number:,}"  # noqa: RUF001  # a dash in a table's cell


@register.filter
def rounded(cost: Decimal | str, places: int) -> str:
    """A cost for display, half up; one that would round to nothing is ``<0.01``."""
    cost = Decimal(cost)
    shown = cost.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    if cost and not shown:
        return f"<{Decimal(1).scaleb(-places):f}"
    return f"{shown:,f}"


@register.filter
def moment(time: datetime) -> str:
    """``20 Nov 2026, 10:17:20``, in UTC, which every page states once."""
    return f"{time.astimezone(UTC):%-d %b %Y, %H:%M:%S}"


@register.filter
def day(time: datetime) -> str:
    """``20 Nov 2026``."""
    return f"{time.astimezone(UTC):%-d %b %Y}"


@register.filter
def exact(time: datetime) -> str:
    """As the API prints it: ISO 8601, UTC, milliseconds."""
    return iso_milliseconds(time)


@register.filter
def duration(milliseconds: int) -> str:
    """``840 ms`` or ``12.35 s``."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.2f} s"


@register.filter
def playing_time(milliseconds: int) -> str:
    """How long audio plays: ``8.4 s``, ``3 min 20 s`` or ``1 h 2 min``; cut, not rounded up."""
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{milliseconds // 100 / 10} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600:,} h {seconds // 60 % 60} min"
