"""Speech of a period as CSV: its sums by day, by voice or by key, and its rows."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from datetime import datetime
from io import StringIO
from typing import Any, Final

from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from accounts.console.base import ConsoleView
from accounts.models import Organization
from core.clock import iso_milliseconds
from core.errors import ApiError, RateLimitExceeded, ServerOverloaded
from usage.api.csv_stream import CsvDownload, slots
from usage.api.export_views import CSV_TYPE, filename
from usage.console.key_names import names_of
from usage.console.period_page import in_words
from usage.console.query_string import SPEECH, PageQuery
from usage.console.speech_page import GROUPS, asked_voice
from usage.console.totals import plain
from usage.models import SpeechRow
from usage.queries.cursors import Cursor
from usage.queries.latest import newer, of_period
from usage.queries.periods import UsageQuery, parse_query
from usage.queries.speech import Shown, SpeechSums, Spoken, speech_sums
from usage.retention.speech import require_speech_rows, require_speech_sums

COLUMNS: Final = (
    *("request_id", "occurred_at", "api_key_id", "api_key_label", "voice", "cloned", "engine"),
    *("response_format", "transport", "outcome", "http_status", "error_type", "close_code"),
    *("characters", "sentences", "audio_ms", "upstream_ms", "first_audio_ms", "gateway_ms"),
)
_STORED: Final = [name for name in COLUMNS if name != "api_key_label"]
_BLOCK_ROWS: Final = 1000
_NAMES: Final = {"day": ("day",), "voice": ("voice",), "key": ("api_key_id", "api_key_label")}
_FIGURES: Final = ("requests", "characters", "audio_ms", "failed")


class SpeechDownload(ConsoleView):
    """A file about the period and with the filters of the usage page of speech."""

    http_method_names: list[str] = ["get"]  # noqa: RUF012  # as Django declares it
    query: UsageQuery
    voice: str | None

    def get(self, request: HttpRequest) -> HttpResponseBase:
        parameters = PageQuery.of(request.GET).parameters
        try:
            self.query = parse_query(parameters)
            self.voice = asked_voice(parameters)
            return self.file()
        except (RateLimitExceeded, ServerOverloaded) as problem:
            answer = self.page("console/export_busy.html", problem.status, problem=problem)
            for name, value in problem.headers.items():
                answer[name] = value
            return answer
        except ApiError as problem:
            return self.page("console/wrong_download.html", problem.status, words=in_words(problem))

    def file(self) -> HttpResponseBase:
        """The file. Raises ``ApiError``."""
        raise NotImplementedError

    def headers(self, by: str = "") -> dict[str, str]:
        name = filename(self.organization, self.query.period, by, subject=SPEECH)
        return {"Content-Disposition": f'attachment; filename="{name}"'}


class SpeechTotals(SpeechDownload):
    """One line for each day, voice or key (``by``), of every request of the period."""

    def file(self) -> HttpResponseBase:
        asked = self.request.GET.get("by", "")
        by = asked if asked in GROUPS else GROUPS[0]
        require_speech_sums(str(self.organization.pk), self.query.period)
        sums = speech_sums(
            str(self.organization.pk),
            self.query.period,
            self.query.filters,
            Shown(voice=self.voice),
            is_bounded=False,
        )
        response = HttpResponse(content_type=CSV_TYPE, headers=self.headers(f"by-{by}"))
        writer = csv.writer(response)
        writer.writerow((*_NAMES[by], *_FIGURES))
        writer.writerows(self._lines(by, sums))
        return response

    def _lines(self, by: str, sums: SpeechSums) -> Iterator[list[object]]:
        lines: dict[str, list[Spoken]] = {
            "day": sums.by_time,
            "voice": sums.by_voice,
            "key": sums.by_key,
        }
        labels = names_of(self.organization, [each.name for each in sums.by_key])
        for each in sorted(lines[by], key=lambda line: line.name):
            begin = [each.name, *([labels[each.name].text] if by == "key" else [])]
            yield [*map(plain, begin), *(getattr(each, name) for name in _FIGURES)]


class SpeechRows(SpeechDownload):
    """One line for each request, oldest first, streamed: a page of rows at a time."""

    def file(self) -> HttpResponseBase:
        require_speech_rows(str(self.organization.pk), self.query.period)
        blocks = _blocks(self.organization, self.query, self.voice)
        body = CsvDownload(blocks, slots.take(str(self.organization.pk)))
        # Else this thread's connection stays open while the download uses its own. A transaction
        # around the view must not be ended here.
        if not connection.in_atomic_block:
            connection.close()
        return StreamingHttpResponse(body, content_type=CSV_TYPE, headers=self.headers())


def _blocks(
    organization: Organization, query: UsageQuery, voice: str | None
) -> Generator[bytes, None, None]:
    """Yield the rows as CSV. Raises ``django.db.Error``, also in the middle."""
    rows = of_period(SpeechRow, str(organization.pk), query.period, query.filters)
    if voice is not None:
        rows = rows.filter(voice=voice)
    yield _csv([COLUMNS])
    after: Cursor | None = None
    while True:
        following = rows if after is None else newer(rows, after)
        ordered = following.order_by("occurred_at", "request_id")
        found = list(ordered.values(*_STORED)[:_BLOCK_ROWS])
        if found:
            names = names_of(organization, {str(row["api_key_id"]) for row in found})
            labels = {key: plain(name.text) for key, name in names.items()}
            yield _csv(
                _line({**row, "api_key_label": labels[str(row["api_key_id"])]}) for row in found
            )
        if len(found) < _BLOCK_ROWS:
            return
        after = Cursor(found[-1]["occurred_at"], found[-1]["request_id"])


def _line(row: dict[str, Any]) -> list[object]:
    return [_cell(row[name]) for name in COLUMNS]


def _cell(value: object) -> object:
    """As in the export of chats: moments in UTC, ``true`` and ``false``, nothing for null."""
    if isinstance(value, datetime):
        return iso_milliseconds(value)
    return str(value).lower() if isinstance(value, bool) else value


def _csv(lines: Any) -> bytes:
    written = StringIO()
    csv.writer(written, lineterminator="\n").writerows(lines)
    return written.getvalue().encode()
