"""The speech card of the usage page: today's characters against the quota, and the last days."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.clock import now
from core.ids import NIL_UUID
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import text_of, words
from usage.ledger import rows


def speak(organization: Organization, back: int = 0, **facts: Any) -> None:
    """Write a speech row of the day ``back`` days ago."""
    day = str(now().date() - timedelta(days=back))
    rows.insert([speech_receipt(organization_id=str(organization.pk), day=day, **facts)])


def allow(organization: Organization, characters: int | None) -> None:
    organization.speech_characters_per_day = characters
    organization.save()


def usage(console: Client, query: str = "") -> str:
    answer = console.get(f"/console/usage{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def meter(page: str) -> dict[str, str]:
    """The attributes of the meter, and its text."""
    found = re.search(r"<meter ([^>]*)>([^<]*)</meter>", page)
    assert found is not None
    return {**dict(re.findall(r'([\w-]+)="([^"]*)"', found[1])), "text": found[2]}


def test_todays_characters_stand_against_the_quota(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    allow(organization, 100_000)
    speak(organization, characters=12_000)
    speak(organization, characters=345, outcome="client_disconnected")
    speak(organization, back=1, characters=7_777)
    speak(stranger, characters=50_000)

    page = usage(console)

    assert text_of(page, "speech-characters") == "12,345 / 100,000"
    assert meter(page) == {
        "min": "0",
        "max": "100000",
        "high": "80000",
        "optimum": "0",
        "value": "12345",
        "aria-label": "Characters spoken today",
        "aria-valuetext": "12,345 of 100,000 characters",
        "text": "12,345 of 100,000 characters",
    }
    assert "used up" not in page
    assert "50,000" not in text_of(page, "speech")


@pytest.mark.parametrize(
    ("limit", "spoken", "said", "has_meter", "is_used_up"),
    [
        pytest.param(None, 77, "77 / unlimited", False, False, id="without a quota"),
        pytest.param(0, 0, "0 / 0", False, None, id="a quota of zero"),
        pytest.param(500, 500, "500 / 500", True, True, id="used up"),
    ],
)
def test_a_quota_has_a_meter_and_says_when_it_is_used_up(
    console: Client,
    organization: Organization,
    limit: int | None,
    spoken: int,
    said: str,
    has_meter: bool,
    is_used_up: bool | None,
) -> None:
    allow(organization, limit)
    if spoken:
        speak(organization, characters=spoken)

    page = usage(console)

    assert text_of(page, "speech-characters") == said
    assert ("<meter" in page) is has_meter
    card = page[page.index('id="speech"') :].split("</section>")[0]
    assert ("<table" in card) is (spoken > 0)
    if is_used_up is not None:
        words_of_it = "The quota is used up; the next day begins at 00:00 UTC."
        assert (words_of_it in words(page)) is is_used_up


def test_speech_of_the_period_is_summed_by_voice_and_key(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    key = mint(organization, Scope.SPEECH, "phone line").api_key
    at = now() - timedelta(hours=1)
    for owner, voice, api_key_id, characters in (
        (organization, "ava", str(key.pk), 100),
        (organization, "ava", str(NIL_UUID), 30),
        (organization, "emma", str(key.pk), 7),
        (stranger, "zoe", str(key.pk), 9_999),
    ):
        one = speech_receipt(
            organization_id=str(owner.pk),
            api_key_id=api_key_id,
            day=str(at.date()),
            voice=voice,
            characters=characters,
            audio_ms=2000,
        )
        rows.insert([one], at)
    period = f"?start={at.date()}&until={now().date()}"

    said = text_of(usage(console, period), "spoken")
    of_key = text_of(usage(console, f"{period}&api_key_id={key.pk}"), "spoken")

    assert "137 characters, 6.0 s of audio, 3 requests" in said
    assert "ava 2 130 4.0 s emma 1 7 2.0 s" in said
    assert "phone line 2 107 4.0 s unattributed 1 30 2.0 s" in said
    assert "107 characters" in of_key
    assert 'id="spoken"' not in usage(console, "?start=2020-01-01&until=2020-01-31")
