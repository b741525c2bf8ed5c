"""Parts of charts of which a page has hundreds, and which a template of each would make slow."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from usage.console.charts import Bar, Cell, Chart
from usage.console.sparks import EndingsRow, Spark
from usage.templatetags.formats import duration_or_dash, exactly, figure

register = template.Library()


@register.simple_tag
def bars(chart: Chart) -> SafeString:
    """The bars of a chart as SVG."""
    return mark_safe("\n".join(_bar(bar, chart.height) for bar in chart.bars))  # noqa: S308  # escaped


def _bar(bar: Bar, height: int) -> str:
    title = escape(bar.title)
    kind = "bar unfinished" if bar.unfinished else "bar"
    reads = f'aria-label="{title}" data-tip="{title}"'
    begin = (
        f'<a class="{kind}" href="{escape(bar.link)}" {reads}>'
        if bar.link
        else f'<g class="{kind}" tabindex="0" role="img" {reads}>'
    )
    parts = "".join(
        f'<rect class="{each.colour}" x="{each.x}" y="{each.y}" width="{each.width}" height="{each.height}"/>'
        for each in bar.segments
    )
    return (
        f'{begin}<title>{title}</title><rect class="reach" x="{bar.x}" y="0" width="{bar.width}" '
        f'height="{height}"/>{parts}{"</a>" if bar.link else "</g>"}'
    )


@register.simple_tag
def spark_bars(spark: Spark) -> SafeString:
    """The bars of a small chart as SVG."""
    parts = []
    for bar in spark.bars:
        title = escape(bar.title)
        parts.append(
            f'<g class="bar" data-tip="{title}"><title>{title}</title><rect class="{spark.colour}" '
            f'x="{bar.x}" y="{bar.y}" width="{bar.width}" height="{bar.height}"/></g>'
        )
    return mark_safe("".join(parts))  # noqa: S308  # escaped


@register.simple_tag
def chart_rows(chart: Chart) -> SafeString:
    """The rows of the table that has the numbers of a chart."""
    lines = []
    for row in chart.table:
        cells = "".join(_cell(each) for each in row.cells)
        cached = _cell(row.cached) if chart.has_cache else ""
        lines.append(f"{_head(row.bucket)}{_cell(row.total, 'n total')}{cells}{cached}")
    return _rows(lines)


@register.simple_tag
def endings_rows(table: Iterable[EndingsRow]) -> SafeString:
    """The rows of the table of failures and times."""
    lines = []
    for row in table:
        first, whole = row.endings.first_token, row.endings.duration
        times = [
            time
            for each in (first, whole)
            for time in ((each.p50, each.p95) if each else (None,) * 2)
        ]
        texts = (
            figure(row.endings.requests),
            figure(row.endings.failed),
            *map(duration_or_dash, times),
        )
        lines.append(_head(row.bucket) + "".join(f'<td class="n">{each}</td>' for each in texts))
    return _rows(lines)


def _rows(lines: Iterable[str]) -> SafeString:
    return mark_safe("".join(f"<tr>{line}</tr>" for line in lines))  # noqa: S308  # escaped


def _head(bucket: str) -> str:
    return f'<th scope="row" class="time">{escape(bucket)}</th>'


def _cell(cell: Cell, kind: str = "n") -> str:
    text = escape(cell.text) if cell.text == cell.exact else exactly(cell.text, cell.exact)
    return f'<td class="{kind}">{text}</td>'
