"""What servers had cached of prompts: on the usage page, in its CSV, on a request's page, in no API."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest
from django.test import Client

from accounts.keys.keys import NewKey
from accounts.models import Organization
from tests.support.pages.console import NOVEMBER, Insert, folded, page_at, text_of, words
from usage.queries import days

PAGE = f"/console/usage?{NOVEMBER}"
SENTENCE = "of your prompt tokens were answered from a server's cache"


@pytest.fixture
def traffic(insert: Insert, key: NewKey, stranger: Organization) -> None:
    """Two days; three models, the server of one of which reports nothing; a key and none."""
    for at, model, tokens, cached, of_key in (
        ("2026-11-03T10:20:00", "acme/warm", 1000, 750, True),
        ("2026-11-04T10:20:00", "acme/warm", 1000, 0, True),
        ("2026-11-04T11:20:00", "acme/cold", 1000, 0, False),
        ("2026-11-05T10:20:00", "acme/silent", 7000, None, False),
    ):
        insert(
            at,
            model_identifier=model,
            backend_reported_input_tokens=tokens,
            cached_input_tokens=cached,
            **({"api_key_id": str(key.api_key.pk)} if of_key else {}),
        )
    insert(
        "2026-11-03T10:20:00",
        organization_id=str(stranger.pk),
        backend_reported_input_tokens=9000,
        cached_input_tokens=9000,
    )


def lines(page: str, heading: str) -> dict[str, str]:
    """The column "Cached" of a table, by the first column."""
    page = re.sub(r"(<th [^>]*>)<a [^>]*>([^<]*)</a>(?=</th>)", r"\1\2", page)
    table = page[page.index(f'<th scope="col">{heading}</th>') :].partition("</table>")[0]
    names = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table)
    found = {}
    for row in re.findall(
        r"<tr>(<th scope=\"row\".*?|\s+<th scope=\"row\".*?)</tr>", table, re.DOTALL
    ):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        plain = [
            html.unescape(re.sub(r"<[^>]+>", " ", each)).split() for each in map(folded, cells)
        ]
        found[" ".join(plain[0])] = " ".join(plain[names.index("Cached")])
    return found


@pytest.mark.parametrize("summed", [False, True], ids=["hours", "days"])
@pytest.mark.usefixtures("traffic")
def test_shares_by_model_key_and_day(console: Client, key: NewKey, summed: bool) -> None:
    if summed:
        days.sum_closed_days()

    page = page_at(console, PAGE)

    assert text_of(page, "cached") == f"25.0 % {SENTENCE}"
    assert lines(page, "Model") == {"acme/warm": "37.5 %", "acme/cold": "0.0 %", "acme/silent": "–"}  # noqa: RUF001
    by_key = lines(page, "Key")
    assert by_key.pop("without a key") == "0.0 %"
    ((name, share),) = by_key.items()
    assert (name.split()[0], share) == ("checkout", "37.5 %")
    assert lines(page, "Day") == {
        "3 Nov 2026": "75.0 %",
        "4 Nov 2026": "0.0 %",
        "5 Nov 2026": "–",  # noqa: RUF001
    }
    assert '<span class="whole">750 of 2,000 tokens</span>' in page


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize(
    ("filtered", "shown"),
    [("&model=acme/warm", "37.5 %"), ("&model=acme/cold", "0.0 %"), ("&start=2026-11-04", "0.0 %")],
)
def test_the_share_is_that_of_the_filtered_period(
    console: Client, filtered: str, shown: str
) -> None:
    assert text_of(page_at(console, PAGE + filtered), "cached") == f"{shown} {SENTENCE}"


@pytest.mark.usefixtures("traffic")
def test_nothing_is_said_where_no_server_reports_it(console: Client) -> None:
    page = page_at(console, f"{PAGE}&model=acme/silent")

    assert "acme/silent" in page
    assert SENTENCE not in page
    assert ">Cached</th>" not in page


@pytest.mark.usefixtures("traffic")
@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("day", {"2026-11-03": (750, 1000), "2026-11-04": (0, 2000), "2026-11-05": (0, 0)}),
        ("model", {"acme/warm": (750, 2000), "acme/cold": (0, 1000), "acme/silent": (0, 0)}),
    ],
)
def test_the_totals_as_csv(console: Client, by: str, expected: dict[str, tuple[int, int]]) -> None:
    found = csv.reader(
        io.StringIO(page_at(console, f"/console/usage/totals.csv?{NOVEMBER}&by={by}"))
    )

    heading, *rows = found
    assert heading[-2:] == ["cached_input_tokens", "cache_reported_input_tokens"]
    assert {row[0]: tuple(map(int, row[-2:])) for row in rows} == expected


@pytest.mark.parametrize(
    ("cached", "shown"), [(30, "Cached input 30"), (0, "Cached input 0"), (None, "")]
)
def test_the_page_of_a_request(
    console: Client, insert: Insert, cached: int | None, shown: str
) -> None:
    row = insert(
        "2026-11-05T10:00:00", backend_reported_input_tokens=40, cached_input_tokens=cached
    )

    said = words(page_at(console, f"/console/requests/{row.request_id}"))

    assert shown in said
    assert ("Cached input" in said) is bool(shown)
    assert "Input 40 / 1,000,000 × 0.15 = 0.00000600000000" in said, "the price is that of all"  # noqa: RUF001


@pytest.mark.usefixtures("traffic")
def test_no_answer_of_the_api_has_it(console: Client) -> None:
    for address in (
        f"/v1/usage?{NOVEMBER}&group_by=model,api_key,time",
        f"/v1/usage/export?{NOVEMBER}&format=json",
    ):
        answer = console.get(address)
        assert answer.status_code == 200
        assert b"acme/warm" in answer.content
        assert b"cache" not in answer.content


def test_a_page_of_hours_has_shares_of_hours(console: Client, insert: Insert) -> None:
    for at, cached in (("10:20", 10), ("10:40", 30), ("11:20", 0)):
        insert(f"2026-11-05T{at}:00", backend_reported_input_tokens=40, cached_input_tokens=cached)

    page = page_at(console, "/console/usage?start=2026-11-05&end=2026-11-06&bucket=hour")

    assert lines(page, "Hour") == {"5 Nov 2026, 10:00": "50.0 %", "5 Nov 2026, 11:00": "0.0 %"}


def test_part_of_an_hour_is_read_from_the_rows(console: Client, insert: Insert) -> None:
    for at, cached in (("10:20", 10), ("10:40", None), ("10:50", 40)):
        insert(f"2026-11-05T{at}:00", backend_reported_input_tokens=40, cached_input_tokens=cached)

    page = page_at(console, "/console/usage?start=2026-11-05T10:10:00Z&end=2026-11-05T10:45:00Z")

    assert text_of(page, "cached") == f"25.0 % {SENTENCE}"
