"""The lines of usage over all organizations, with failures, speech and change, and their chart."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from accounts.models import ApiKey, Organization
from core import clock
from core.clock import midnight
from core.ids import NIL_UUID
from usage.console.charts import Chart, Metric, stacked
from usage.queries.everyone import By, Entry, Speech, spoken, sums, totals
from usage.queries.periods import Bucket, Period
from usage.queries.series import Point

_SPOKEN_BY: Final = frozenset({By.ORGANIZATION, By.DAY})
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SumsLine:
    """A group as people read it."""

    names: tuple[tuple[str, str], ...]
    """For each part its name, and the address of its admin page or an empty text."""
    entry: Entry
    speech: Speech | None
    """None where there is none, or where it stands beside another currency of the group."""
    before: Decimal | None
    """Its cost in the period before; None where days are not compared."""

    @property
    def change(self) -> str:
        return change(self.entry.cost, self.before)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is added up: whole days, the grouping, and one organization's id or None for all."""

    period: Period
    by: tuple[By, ...]
    organization_id: str | None

    @property
    def has_speech(self) -> bool:
        """Whether the sums of speech have this grouping: they have neither model nor key."""
        return _SPOKEN_BY.issuperset(self.by)

    @property
    def before(self) -> Period | None:
        """The month before a whole month, otherwise as many days before; None where days are grouped."""
        if By.DAY in self.by:
            return None
        start, end = self.period.start, self.period.end
        if start == clock.month_of(start) and end == clock.next_month(start):
            return Period(clock.month_of(start - _DAY), start)
        return Period(start - (end - start), start)


@dataclass(frozen=True, slots=True)
class Sums:
    """All groups of a selection, those that cost most first, and their totals by currency."""

    lines: list[SumsLine]
    totals: list[SumsLine]
    speech: Speech
    """Of all groups."""

    @property
    def unknown(self) -> int:
        return sum(each.entry.unknown for each in self.totals)


def sums_of(selection: Selection) -> Sums:
    """Read the groups of ``selection``. Raises ``django.db.Error``."""
    by, chosen = selection.by, selection.organization_id
    entries = sums(selection.period, by, organization_id=chosen)
    before = (
        sums(selection.before, by, organization_id=chosen) if selection.before is not None else None
    )
    costs = None if before is None else {(each.key, each.currency): each.cost for each in before}
    grouped_by = by if selection.has_speech else (By.ORGANIZATION,)
    speech = spoken(selection.period, grouped_by, organization_id=chosen)
    left = dict(speech) if selection.has_speech else {}
    seen = {(each.key, each.currency) for each in entries}
    entries += [
        Entry(each.key, each.currency)
        for each in before or ()
        if (each.key, each.currency) not in seen
    ]
    chatted = {each.key for each in entries}
    entries += [
        Entry(key, settings.SVC_DEFAULT_CURRENCY)
        for key in sorted(left, key=lambda key: -left[key].characters)
        if key not in chatted
    ]
    names = Names(by, entries)
    lines = [
        SumsLine(
            tuple(map(names.of, by, entry.key)),
            entry,
            left.pop(entry.key, None),
            None if costs is None else costs.get((entry.key, entry.currency), Decimal(0)),
        )
        for entry in entries
    ]
    return Sums(lines, _totals(entries, before), _all(speech))


def _totals(entries: Sequence[Entry], before: Sequence[Entry] | None) -> list[SumsLine]:
    costs = {each.currency: each.cost for each in totals(before or ())}
    return [
        SumsLine((), whole, None, None if before is None else costs.get(whole.currency, Decimal(0)))
        for whole in totals(entries)
    ]


def _all(speech: Mapping[tuple[str, ...], Speech]) -> Speech:
    found = speech.values()
    return Speech(
        sum(each.requests for each in found),
        sum(each.characters for each in found),
        sum(each.audio_ms for each in found),
    )


def change(cost: Decimal, before: Decimal | None) -> str:
    """``+12 %``, ``new`` where there was nothing before, empty where nothing is compared."""
    if before is None or cost == before:
        return ""
    if not before:
        return "new"
    return f"{100 * (cost - before) / before:+,.0f} %".replace("-", "\N{MINUS SIGN}")


def chart_of(selection: Selection) -> Chart | None:
    """Costs by day, of the organizations or models that cost most; requests where currencies differ."""
    dimension = By.MODEL if selection.organization_id or By.MODEL in selection.by else None
    by = (dimension or By.ORGANIZATION, By.DAY)
    entries = sums(selection.period, by, organization_id=selection.organization_id)
    if not entries:
        return None
    names = Names(by, entries)
    points = [
        Point(
            midnight(datetime.fromisoformat(entry.key[1]).date()),
            names.of(by[0], entry.key[0])[0],
            entry.currency,
            entry.requests,
            entry.input_tokens,
            entry.output_tokens,
            entry.cost,
        )
        for entry in entries
    ]
    is_cost = len({each.currency for each in points}) == 1 and any(each.cost for each in points)
    metric = Metric.COST if is_cost else Metric.REQUESTS
    unit = points[0].currency if is_cost else metric.value

    def day(start: datetime) -> str:
        shown = {"first": f"{start:%Y-%m-%d}", "last": f"{start:%Y-%m-%d}", "by": by[0].value}
        return f"?{urlencode({**shown, 'organization': selection.organization_id or ''})}"

    return stacked(points, selection.period, Bucket.DAY, metric, unit, day)


class Names:
    """Names and admin pages of the organizations and keys in ``entries``."""

    def __init__(self, by: tuple[By, ...], entries: Sequence[Entry]) -> None:
        ids = {each: {entry.key[at] for entry in entries} for at, each in enumerate(by)}
        self._organizations = dict(
            Organization.objects.filter(pk__in=ids.get(By.ORGANIZATION, ())).values_list(
                "pk", "name"
            )
        )
        self._keys = {
            pk: f"{prefix}… {label}".strip()
            for pk, prefix, label in ApiKey.objects.filter(
                pk__in=ids.get(By.API_KEY, ())
            ).values_list("pk", "prefix", "label")
        }

    def of(self, by: By, value: str) -> tuple[str, str]:
        """Return the name of ``value``, and the address of its admin page or an empty text."""
        if by is By.ORGANIZATION:
            return self._named(self._organizations, value, "admin:accounts_organization_change")
        if by is By.API_KEY:
            if value == str(NIL_UUID):
                return "without a key", ""
            return self._named(self._keys, value, "admin:accounts_apikey_change")
        return value, ""

    @staticmethod
    def _named(names: dict[uuid.UUID, str], value: str, page_name: str) -> tuple[str, str]:
        name = names.get(uuid.UUID(value))
        if name is None:
            return f"{value} (no longer here)", ""
        return name, reverse(page_name, args=[value])
