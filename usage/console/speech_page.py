"""The usage page of speech: sums of a period as cards, a chart, and tables by voice and by key.

Its parameters are those of the usage page of chats, with ``surface=speech``, and ``voice``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from msgspec.structs import replace

from accounts.console.addresses import reverse
from core.errors import InvalidQuery
from usage.console.charts import Cell, Measure, drawn_bucket, measured
from usage.console.key_names import KeyName, distinct_texts, names_of
from usage.console.period_page import PeriodPage
from usage.console.query_string import SPEECH, PageQuery
from usage.console.request_filters import FAILED
from usage.console.sorting import Order
from usage.console.usage_page import UsagePage
from usage.queries.periods import UsageQuery
from usage.queries.speech import Dimension, Shown, SpeechSums, Spoken, SpokenPoint, speech_sums
from usage.retention.speech import require_speech_sums
from usage.templatetags.formats import duration

GROUPS: Final = ("day", "voice", "key")
"""What the sums can be downloaded by."""

_BY: Final[Mapping[str, Dimension]] = {"voice": "voice", "key": "api_key_id"}
_MINUTE: Final = Decimal(60_000)
_TENTH: Final = Decimal("0.1")


class SpeechMetric(StrEnum):
    """What the bars of speech show."""

    CHARACTERS = "characters"
    AUDIO = "audio"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line of a table; ``link`` filters by it."""

    name: str
    detail: str
    link: str
    sums: Spoken


class VoiceForm(forms.Form):
    """The filter by voice. A browser offers those of the period; any other may be asked for."""

    voice = forms.CharField(label="Voice", required=False, max_length=100)

    def __init__(self, data: Mapping[str, str], voices: Iterable[str]) -> None:
        super().__init__(data)
        offered = sorted({*voices, *filter(None, [data.get("voice")])})
        choices = [("", "All voices"), *((each, each) for each in offered)]
        self.fields["voice"].widget = forms.Select(choices=choices)


class SpeechUsagePage(PeriodPage):
    """Cards, chart, and tables by voice and by key."""

    section = "usage"
    template = "console/usage_speech.html"
    _voices: frozenset[str] = frozenset()
    """Those of the period, whatever the filter."""

    def frame(self) -> dict[str, Any]:
        return {
            "surfaces": self.usage_tabs(),
            "filter_form": VoiceForm(self.page_query.parameters, self._voices),
            "is_speech": True,
        }

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        require_speech_sums(str(self.organization.pk), query.period)
        bucket = drawn_bucket(query.period, query.bucket)
        metric, by = self._asked("metric", SpeechMetric), self._asked("by", _BY)
        sums = speech_sums(
            str(self.organization.pk),
            query.period,
            query.filters,
            Shown(bucket, _BY[by], asked_voice(self.page_query.parameters)),
        )
        self._voices = sums.voices
        names = names_of(self.organization, {part.api_key_id for part in sums.parts})
        sort = self.page_query.parameters.get("sort")
        points = _named(sums.points, names) if by == "key" else sums.points
        measure = _MEASURES[SpeechMetric(metric)]
        return {
            "sums": sums.total,
            "since": sums.since,
            "metric": metric,
            "metrics": [(each.value, self.page_query.link(metric=each)) for each in SpeechMetric],
            "by": by,
            "dimensions": [(each, self.page_query.link(by=each)) for each in _BY],
            "chart": measured(points, query.period, bucket, measure, self.link_to(bucket))
            if points
            else None,
            "coarser": bucket is not query.bucket,
            "voices": _ORDER.sort(self._by_voice(sums), sort),
            "keys": _ORDER.sort(self._by_key(sums, names), sort),
            "heads": _ORDER.heads(sort, lambda name: self.page_query.link(sort=name)),
            "failures_link": self.page_query.link(outcome=FAILED),
            "downloads": [
                ("Requests as CSV", reverse("console-speech-rows") + self.page_query.link()),
                *self.totals_links("console-speech-totals", GROUPS),
            ],
        }

    def _asked(self, name: str, choices: Iterable[str]) -> str:
        """The value of a parameter that is one of ``choices``; the first without one."""
        asked, known = self.page_query.parameters.get(name), [str(each) for each in choices]
        return asked if asked in known else known[0]

    def offered_models(self, query: UsageQuery) -> list[str]:
        """None: speech has no models."""
        return []

    def _by_voice(self, sums: SpeechSums) -> list[SpokenLine]:
        return [
            SpokenLine(each.name, "", self.page_query.link(voice=each.name), each)
            for each in sums.by_voice
        ]

    def _by_key(self, sums: SpeechSums, names: Mapping[str, KeyName]) -> list[SpokenLine]:
        return [
            SpokenLine(name.text, name.prefix, self.page_query.link(api_key_id=each.name), each)
            for each in sums.by_key
            for name in (names[each.name],)
        ]


def asked_voice(parameters: Mapping[str, str]) -> str | None:
    """The voice to which a page or file is restricted. Raises ``InvalidQuery`` where it can be none."""
    voice = parameters.get("voice")
    # PostgreSQL refuses NUL in a text.
    if voice is not None and not voice.isprintable():
        raise InvalidQuery("'voice' must be the id of a voice.", param="voice")
    return voice


def usage_page(request: HttpRequest, **named: str) -> HttpResponseBase:
    """The usage page of chats, or with ``surface=speech`` that of speech."""
    asked = PageQuery.of(request.GET).parameters.get("surface")
    return (SpeechUsagePage if asked == SPEECH else UsagePage).as_view()(request, **named)


def _named(points: Iterable[SpokenPoint], names: Mapping[str, KeyName]) -> list[SpokenPoint]:
    """Points by key, under the names of the keys."""
    texts = distinct_texts(names)
    return [replace(point, name=texts[point.name]) for point in points]


def _of(figure: Callable[[Spoken], int]) -> Callable[[SpokenPoint], Decimal]:
    return lambda point: Decimal(figure(point.sums))


def _whole(value: Decimal) -> Cell:
    return Cell(f"{value:,}", f"{value:,}")


def _minutes(value: Decimal) -> Cell:
    """Minutes with one decimal; exact as a duration."""
    text = f"<{_TENTH}" if 0 < value < _TENTH else f"{value:,.1f}"
    return Cell(text, duration(int(value * _MINUTE)) if value else text)


_MEASURES: Final[Mapping[SpeechMetric, Measure[SpokenPoint]]] = {
    SpeechMetric.CHARACTERS: Measure("characters", _of(attrgetter("characters")), _whole),
    SpeechMetric.AUDIO: Measure(
        "minutes", lambda point: Decimal(point.sums.audio_ms) / _MINUTE, _minutes
    ),
    SpeechMetric.REQUESTS: Measure("requests", _of(attrgetter("requests")), _whole),
}

_ORDER = Order[SpokenLine](
    {
        "name": attrgetter("name"),
        "requests": attrgetter("sums.requests"),
        "characters": attrgetter("sums.characters"),
        "audio": attrgetter("sums.audio_ms"),
    },
    default="-characters",
)
