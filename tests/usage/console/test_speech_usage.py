"""The usage page of speech: its period by voice and key, and its downloads."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.conf import settings
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import ApiKey, Organization, Scope
from core.ids import NIL_UUID
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import page_at, text_of, words
from usage.api.csv_stream import slots
from usage.console.speech_downloads import COLUMNS, _blocks
from usage.ledger import rows
from usage.models import SpeechWatermark
from usage.queries.periods import parse_query

PATH = "/console/usage"


def usage(console: Client, query: str = "") -> str:
    return page_at(console, f"{PATH}?surface=speech{query}")


@pytest.fixture
def phone(organization: Organization) -> ApiKey:
    return mint(organization, Scope.SPEECH, "phone line").api_key


@pytest.fixture
def two_days(organization: Organization, stranger: Organization, phone: ApiKey) -> str:
    """Write speech of two days; return the query string of its period."""
    noon = datetime(2026, 11, 3, 12, tzinfo=UTC)
    for owner, voice, key, characters, at, outcome in (
        (organization, "ava", phone.pk, 100, noon, "success"),
        (organization, "ava", NIL_UUID, 30, noon, "backend_timeout"),
        (organization, "emma", phone.pk, 7, noon + timedelta(days=1), "success"),
        (stranger, "zoe", phone.pk, 9_999, noon, "success"),
    ):
        one = speech_receipt(
            organization_id=str(owner.pk),
            api_key_id=str(key),
            day=str(at.date()),
            voice=voice,
            characters=characters,
            audio_ms=60_000,
            outcome=outcome,
        )
        rows.insert([one], at)
    return "&start=2026-11-01&until=2026-11-30"


def lines_of(answer: Any) -> list[list[str]]:
    return list(csv.reader(answer.content.decode().splitlines()))


def test_the_cards_and_tables_are_of_the_period_and_the_filters(
    console: Client, two_days: str, phone: ApiKey
) -> None:
    page = usage(console, two_days)

    shown = [text_of(page, each) for each in ("requests", "characters", "audio", "failed")]
    assert shown == ["3", "137", "3 min 0 s", "1"]
    assert "ava 2 130 2 min 0 s emma 1 7 1 min 0 s" in words(page)
    assert f"phone line {phone.prefix}… 2 107" in words(page)
    assert "without a key 1 30" in words(page)
    assert "9,999" not in page
    assert text_of(usage(console, f"{two_days}&api_key_id={phone.pk}"), "characters") == "107"
    of_emma = usage(console, f"{two_days}&voice=emma")
    assert text_of(of_emma, "characters") == "7"
    assert '<option value="ava">' in of_emma, "the filter offers the others"
    assert "outcome=failed" in page
    assert text_of(usage(console, "&start=2020-01-01&until=2020-01-31"), "requests") == "0"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("", "3 Nov 2026: 130 characters\nava: 130"),
        ("&by=key", "3 Nov 2026: 130 characters\nphone line: 100\nwithout a key: 30"),
        ("&metric=audio", "3 Nov 2026: 2.0 minutes\nava: 2.0"),
        ("&metric=requests&voice=emma", "4 Nov 2026: 1 request\nemma: 1"),
        ("&metric=cost&by=model", "3 Nov 2026: 130 characters\nava: 130"),
    ],
)
def test_the_bars_show_characters_audio_or_requests_by_voice_or_key(
    console: Client, two_days: str, query: str, title: str
) -> None:
    assert f'data-tip="{title}"' in usage(console, two_days + query)


def test_a_key_that_is_labelled_as_requests_without_one_is_told_from_them(
    console: Client, two_days: str, phone: ApiKey
) -> None:
    ApiKey.objects.filter(pk=phone.pk).update(label="without a key")

    page = usage(console, two_days + "&by=key")

    of_the_key = f"without a key ({phone.prefix}…): 100"
    assert f'data-tip="3 Nov 2026: 130 characters\n{of_the_key}\nwithout a key: 30"' in page


def test_the_tabs_keep_the_period(console: Client, two_days: str) -> None:
    page = console.get(f"{PATH}?{two_days}&by=key").content.decode()

    (link,) = re.findall(r'href="([^"]*)">Speech</a>', page)
    there = console.get(link.replace("&amp;", "&")).content.decode()
    assert text_of(there, "characters") == "137"
    assert "phone line: 100" in there


def test_totals_are_downloaded_by_day_voice_and_key(
    console: Client, organization: Organization, two_days: str, phone: ApiKey
) -> None:
    def totals(by: str) -> list[list[str]]:
        return lines_of(console.get(f"{PATH}/speech/totals.csv?{two_days}&by={by}"))

    head, *days = totals("day")
    assert head == ["day", "requests", "characters", "audio_ms", "failed"]
    assert days == [
        ["2026-11-03", "2", "130", "120000", "1"],
        ["2026-11-04", "1", "7", "60000", "0"],
    ]
    assert [line[:3] for line in totals("voice")[1:]] == [["ava", "2", "130"], ["emma", "1", "7"]]
    assert [str(phone.pk), "phone line", "2", "107", "120000", "0"] in totals("key")
    answer = console.get(f"{PATH}/speech/totals.csv?{two_days}&by=voice&voice=emma")
    assert len(lines_of(answer)) == 2
    assert answer["Content-Disposition"].startswith(
        f'attachment; filename="speech-{organization.slug}-by-voice-2026'
    )
    for wrong in ("?start=2026-02-02&until=2026-02-01", "?voice=%00"):
        assert console.get(f"{PATH}/speech/totals.csv{wrong}").status_code == 400


def test_what_can_be_no_voice_is_refused_in_words(console: Client) -> None:
    answer = console.get(f"{PATH}?surface=speech&voice=%00")

    assert answer.status_code == 400
    assert "'voice' must be the id of a voice." in words(answer.content.decode())


@pytest.mark.parametrize("block", [1, 1000])
def test_rows_are_downloaded_a_page_at_a_time(
    console: Client, two_days: str, phone: ApiKey, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr("usage.console.speech_downloads._BLOCK_ROWS", block)
    organization, query = (
        phone.organization,
        parse_query(dict(parse_qsl(two_days.replace("until=2026-11-30", "end=2026-12-01")))),
    )

    text = b"".join(_blocks(organization, query, None)).decode()

    head, *found = csv.reader(text.splitlines())
    lines = [dict(zip(head, line, strict=True)) for line in found]
    assert tuple(head) == COLUMNS
    assert [line["characters"] for line in lines] in (["100", "30", "7"], ["30", "100", "7"])
    assert lines[2]["api_key_label"] == "phone line"
    assert (lines[2]["cloned"], lines[2]["occurred_at"]) == ("false", "2026-11-04T12:00:00.000Z")
    assert b"".join(_blocks(organization, query, "emma")).count(b"\n") == 2


def test_a_download_of_rows_waits_while_others_run(
    console: Client, organization: Organization, two_days: str
) -> None:
    address = f"{PATH}/speech/rows.csv?{two_days}"
    taken = [
        slots.take(str(organization.pk))
        for _ in range(settings.SVC_EXPORT_DOWNLOADS_PER_ORGANIZATION)
    ]

    busy = console.get(address)
    assert (busy.status_code, busy["retry-after"]) == (429, "5")
    assert "This download has to wait" in words(busy.content.decode())
    for slot in taken:
        slot.release()
    answer = console.get(address)
    assert answer.status_code == 200
    assert 'filename="speech-' in answer["Content-Disposition"]


@pytest.fixture
def pruned(organization: Organization) -> None:
    """Speech before August, whose rows ``prune_speech`` deleted."""
    august = datetime(2026, 8, 1, tzinfo=UTC)
    SpeechWatermark.objects.create(organization_id=organization.pk, until=august, pruned=august)


@pytest.mark.usefixtures("pruned")
@pytest.mark.parametrize("page", [f"{PATH}?surface=speech&", f"{PATH}/speech/totals.csv?"])
def test_a_part_of_an_hour_of_deleted_speech_cannot_be_summed(console: Client, page: str) -> None:
    refused = page_at(console, f"{page}start=2026-07-31T23:30Z&end=2026-08-01T00:30Z", 400)

    assert "Before 2026-08-01 only whole hours can be summed" in words(refused)
    page_at(console, f"{page}start=2026-07-31T23:00Z&end=2026-08-01T00:30Z")


@pytest.mark.usefixtures("pruned")
def test_a_download_of_deleted_speech_says_so_instead_of_being_empty(console: Client) -> None:
    rows_of = f"{PATH}/speech/rows.csv?end=2026-08-02&start="

    refused = page_at(console, f"{rows_of}2026-07-31", 400)

    assert "Rows of speech before 2026-08-01 have been deleted" in words(refused)
    kept = console.get(f"{rows_of}2026-08-01", follow=True)
    assert (kept.status_code, kept["Content-Type"]) == (200, "text/csv; charset=utf-8")
    kept.close()
