"""Times in the person's zone; days, the API and downloads stay UTC."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from tests.support.pages.console import NOVEMBER, Insert, words

EARLY = "2026-11-05T20:30:00.123"


@pytest.fixture
def in_india(person: User) -> None:
    person.time_zone = "Asia/Kolkata"
    person.save()


@pytest.mark.usefixtures("in_india")
def test_times_are_in_the_zone_which_the_page_names(console: Client, insert: Insert) -> None:
    row = insert(EARLY)

    page = console.get(f"/console/requests?{NOVEMBER}").content.decode()
    assert "Times in Asia/Kolkata, days in UTC" in page
    assert "6 Nov 2026, 02:00:00" in page
    assert "2026-11-05T20:30:00.123Z" in page, "the exact time is the API's"
    one = words(console.get(f"/console/requests/{row.request_id}").content.decode())
    assert "6 Nov 2026, 02:00:00 UTC+05:30" in one


@pytest.mark.usefixtures("in_india")
def test_days_and_downloads_stay_utc(console: Client, insert: Insert) -> None:
    insert(EARLY)

    def rows_of(day: str, after: str) -> int:
        page = console.get(f"/console/requests?start={day}&end={after}").content.decode()
        return page.count("data-row=")

    assert (rows_of("2026-11-05", "2026-11-06"), rows_of("2026-11-06", "2026-11-07")) == (1, 0)
    usage = console.get(f"/console/usage?{NOVEMBER}").content.decode()
    assert "start=2026-11-05&amp;end=2026-11-06" in usage, "the bar leads to its UTC day"
    assert "start=2026-11-06&amp;end=2026-11-07" not in usage
    export = console.get(f"/v1/usage/export?{NOVEMBER}").json()
    assert [row["occurred_at"] for row in export["rows"]] == ["2026-11-05T20:30:00.123Z"]
