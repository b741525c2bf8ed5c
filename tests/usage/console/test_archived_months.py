"""A period whose rows are archived: the pages say so, and show no figure that needs the rows."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest
from django.test import Client

from tests.support.pages.console import Insert, page_at, text_of, words
from usage.models import PrunedMonth, UsageRow

JULY = "start=2026-07-01&end=2026-08-01"
PARTLY = "start=2026-07-20&end=2026-08-20"
AUGUST = "start=2026-08-01&end=2026-09-01"
ARCHIVED = "Rows before 1 Aug 2026 are archived"


@pytest.fixture(autouse=True)
def july_is_pruned(insert: Insert) -> None:
    """As ``prune`` leaves it: the sums of the failed request stay, and its row is gone."""
    failed = {"outcome": "backend_error", "http_status": 502, "error_code": "backend_error"}
    row = insert("2026-07-25T10:00:00", **failed)
    UsageRow.objects.filter(request_id=row.request_id).delete()
    PrunedMonth.objects.create(
        first=datetime(2026, 7, 1, tzinfo=UTC).date(),
        first_id="req_0",
        end_id="req_0",
        rows=1,
        archive="usage-2026-07.parquet",
        sha256="0" * 64,
        pruned_at=datetime.now(UTC),
    )


def downloads(page: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r'href="([^"]+)" download', page)]


@pytest.mark.parametrize("period", [JULY, PARTLY])
def test_the_usage_page_has_sums_and_failures_without_a_link(console: Client, period: str) -> None:
    page = page_at(console, f"/console/usage?{period}")

    assert words(page).count(ARCHIVED) == 1
    assert text_of(page, "requests") == "1"
    assert text_of(page, "failed") == "1"
    assert "outcome=failed" not in page


@pytest.mark.parametrize(("period", "kinds"), [(JULY, 3), (PARTLY, 3), (AUGUST, 4)])
def test_only_downloads_that_are_answered_are_offered(
    console: Client, period: str, kinds: int
) -> None:
    offered = downloads(page_at(console, f"/console/usage?{period}"))

    assert len(offered) == kinds
    assert [console.get(each).status_code for each in offered] == [200] * kinds


def test_a_partly_archived_list_does_not_say_that_it_is_whole(
    console: Client, insert: Insert
) -> None:
    kept = insert("2026-08-10T10:00:00").request_id
    page = page_at(console, f"/console/requests?{PARTLY}")

    assert kept in page
    assert words(page).count(ARCHIVED) == 1
    assert "No older requests" not in words(page)


@pytest.mark.parametrize(
    "address",
    [
        f"/console/usage?{AUGUST}",
        f"/console/requests?{AUGUST}",
        f"/console/requests?{JULY}&surface=speech",
    ],
)
def test_nothing_is_said_where_no_row_is_missing(console: Client, address: str) -> None:
    """Rows of speech are never archived."""
    assert "archived" not in words(page_at(console, address))


@pytest.mark.parametrize("page", ["usage", "usage/totals.csv"])
def test_a_part_of_an_archived_hour_cannot_be_summed(console: Client, page: str) -> None:
    period = "start=2026-07-25T09:30:00Z&end=2026-08-01"
    shown = words(page_at(console, f"/console/{page}?{period}", 400))

    assert "Before 2026-08-01 only whole hours can be summed" in shown
    assert "Enter a day" not in shown
