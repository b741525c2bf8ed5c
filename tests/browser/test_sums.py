"""People read sums: a customer the speech of a period, an operator what all organizations used."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_console import wide_period
from tests.support.speech.accounts import account_of
from tests.support.until import until


def test_speech_is_shown_by_voice_and_key_and_downloaded(consoling: Visit) -> None:
    speech = account_of(consoling.gateway, consoling.gateway.organization)
    texts = {"ava": ["One.", "Two, three."], "leo": ["A longer text than the others."]}
    for voice, spoken in texts.items():
        for text in spoken:
            assert speech.speak(text, voice=voice).status_code == 200
    until(lambda: len(speech.rows()) == 3)
    characters = {voice: sum(map(len, spoken)) for voice, spoken in texts.items()}

    page = consoling.open(f"/console/usage?surface=speech&{wide_period()}")
    expect(page.locator("#requests")).to_have_text("3")
    expect(page.locator("#characters")).to_have_text(str(sum(characters.values())))
    expect(page.locator("#failed")).to_have_text("0")
    expect(page.locator("#chart .legend li")).to_have_text(["leo", "ava"])
    voices, keys = page.locator("table.breakdown").all()
    for voice, spoken in texts.items():
        row = voices.locator("tbody tr", has_text=voice)
        assert row.locator("td").all_inner_texts()[:2] == [
            str(len(spoken)),
            str(characters[voice]),
        ]
    expect(keys.locator("tbody tr")).to_have_count(1)

    page.click(".export summary")
    with page.expect_download() as download:
        page.click("text=Totals by voice as CSV")
    lines = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {each["voice"]: int(each["characters"]) for each in lines} == characters

    voices.locator("text=leo").click()
    expect(page.locator("#requests")).to_have_text("1")
    expect(page.locator("#characters")).to_have_text(str(characters["leo"]))


def test_an_operator_goes_from_the_sums_of_all_to_one_organization(operating: Visit) -> None:
    gateway = operating.gateway
    for text in ("say: one", "say: two", "say: one two [[sim fault=garbage@1]]"):
        gateway.chat(text, stream=True)
    gateway.rows_when(3)
    speech = account_of(gateway, gateway.organization)
    assert speech.speak("Hello.", voice="ava").status_code == 200
    until(speech.rows)

    page = operating.open("/admin/usage/usagerow/sums/")
    row = page.locator("table.svc-sums tbody tr", has_text=gateway.organization.name)
    shown = dict(
        zip(
            page.locator("table.svc-sums thead th").all_inner_texts(),
            row.locator("td").all_inner_texts(),
            strict=True,
        )
    )
    assert (shown["Requests"], shown["Speech requests"], shown["Characters"]) == ("3", "1", "6")
    assert shown["Failed"].startswith("1")
    expect(page.locator("#svc-chart ~ * .bar").first).to_be_visible()
    row.locator("a").first.click()
    page.wait_for_url(f"**/{gateway.organization.pk}/**")


def test_failures_and_times_of_a_period_are_drawn_and_lead_to_their_requests(
    consoling: Visit,
) -> None:
    gateway = consoling.gateway
    for text in ("say: one", "say: two", "say: one two [[sim fault=garbage@1]]"):
        gateway.chat(text, stream=True)
    gateway.rows_when(3)

    page = consoling.open(f"/console/usage?{wide_period()}")
    sparks = page.locator("figure.spark")
    assert sparks.count() >= 2
    expect(sparks.filter(has_text="Failed").locator("figcaption")).to_contain_text("at most 1")
    page.click("nav >> text=Overview")
    page.click("text=1 of 3 (33.3 %)")
    expect(page.locator("table.requests tbody tr")).to_have_count(1)
