"""Times in the person's zone; days, the API and downloads stay UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope, User
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


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_a_key_may_expire_on_the_last_day_of_the_calendar(
    console: Client, person: User, organization: Organization, zone: str
) -> None:
    """Automations write it for a key that never expires; east of UTC its end has no time of its own."""
    User.objects.filter(pk=person.pk).update(time_zone=zone)
    key = mint(organization, Scope.READ, expires_at=datetime(9999, 12, 31, 23, 59, tzinfo=UTC))

    for page in ("keys", f"keys/{key.api_key.pk}"):
        answer = console.get(f"/console/{organization.slug}/{page}")
        assert answer.status_code == 200
        assert "31 Dec 9999" in words(answer.content.decode())
