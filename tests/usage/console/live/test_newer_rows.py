"""What a page of requests reads when requests have ended since."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from accounts.keys.keys import NewKey
from accounts.models import Membership, Organization, User
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.pages.console import Insert
from usage.ledger import rows

LIST = "/console/requests"


def _now(seconds: float = 0.0) -> str:
    """``seconds`` from now, as ``insert`` takes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def _watched(page: str) -> tuple[str, str]:
    """The address of newer rows that ``page`` names, and its cursor."""
    newer = re.search(r'data-newer="([^"]+)"', page)
    after = re.search(r'data-after="([^"]+)"', page)
    assert newer is not None
    assert after is not None
    return html.unescape(newer[1]), after[1]


def _ids(page: str) -> list[str]:
    return re.findall(r'data-row="\S+ (\w+)"', page)


def _newer(console: Client, address: str, after: str) -> str:
    answer = console.get(f"{address}&after={after}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_rows_that_ended_since_follow_once_and_all(console: Client, insert: Insert) -> None:
    early = insert(_now(-60)).request_id
    page = console.get(LIST).content.decode()
    address, after = _watched(page)
    shown = _ids(page)
    assert shown == [early]

    for count in (1, 3, 2):
        new = [insert(_now()).request_id for _ in range(count)]
        found = _newer(console, address, after)
        _, after = _watched(page), re.search(r'data-after="([^"]+)"', found)[1]  # type: ignore[index]
        assert "data-whole" not in found
        # Rows of running commits may come again; the script leaves out what it shows already.
        shown += [each for each in _ids(found) if each not in shown]
        assert set(new) <= set(shown)

    assert len(shown) == 7


@pytest.mark.sqlite
def test_a_row_that_becomes_visible_late_is_not_missed(console: Client, insert: Insert) -> None:
    """Two writers may commit in another order than that of their rows' times."""
    address, after = _watched(console.get(LIST).content.decode())
    later = insert(_now()).request_id
    after = re.search(r'data-after="([^"]+)"', _newer(console, address, after))[1]  # type: ignore[index]
    # SQLite's rows count as complete after two seconds; PostgreSQL knows which commits still run.
    late = insert(_now(-0.2)).request_id

    found = _ids(_newer(console, address, after))

    assert set(found) >= {late}
    assert found == [later, late] or found == [late]


def test_more_than_a_page_replaces_the_list(console: Client, insert: Insert) -> None:
    insert(_now(-60))
    address, after = _watched(console.get(LIST).content.decode())
    new = [insert(_now(number / 1000)).request_id for number in range(60)]

    found = _newer(console, address, after)

    assert "data-whole" in found
    assert _ids(found) == new[:-51:-1]
    older = re.search(r'href="([^"]+)" rel="next"', found)
    assert older is not None
    rest = _ids(console.get(LIST + html.unescape(older[1])).content.decode())
    assert rest[:10] == new[9::-1]


def test_the_filters_of_the_page_apply(console: Client, insert: Insert, key: NewKey) -> None:
    query = f"?outcome=failed&model=acme/a&api_key_id={key.api_key.pk}"
    address, after = _watched(console.get(LIST + query).content.decode())
    facts = {"api_key_id": str(key.api_key.pk), "model_identifier": "acme/a"}
    failed = {"outcome": "backend_error", "http_status": 502, "error_code": "backend_error"}
    insert(_now(), **facts)
    insert(_now(), **{**facts, **failed, "model_identifier": "acme/b"})
    insert(_now(), **failed, model_identifier="acme/a")
    wanted = insert(_now(), **facts, **failed).request_id

    assert _ids(_newer(console, address, after)) == [wanted]


def test_speech_rows_come_to_the_list_of_speech(
    console: Client, organization: Organization
) -> None:
    address, after = _watched(console.get(f"{LIST}?surface=speech").content.decode())
    spoken = speech_receipt(organization_id=str(organization.pk))
    rows.insert([spoken, receipt(organization_id=str(organization.pk))])

    assert _ids(_newer(console, address, after)) == [spoken.request_id]


def test_rows_of_other_organizations_never_come(
    console: Client, person: User, stranger: Organization
) -> None:
    address, after = _watched(console.get(LIST).content.decode())
    rows.insert([receipt(organization_id=str(stranger.pk))])

    assert _ids(_newer(console, address, after)) == []
    foreign = address.replace("northwind", stranger.slug)
    assert console.get(f"{foreign}&after={after}").status_code == 404
    # The page of the first goes on when a second one shows another organization.
    Membership.objects.create(user=person, organization=stranger)
    assert console.get(f"{foreign}&after={after}").status_code == 200
    assert _ids(_newer(console, address, after)) == []


@pytest.mark.parametrize(
    "query", ["?start=2026-01-01&end=2026-02-01", "?cursor={cursor}", "?min_cost=x"]
)
def test_only_a_list_that_can_grow_is_live(console: Client, insert: Insert, query: str) -> None:
    for number in range(51):
        insert(_now(-number))
    cursor = re.search(r"cursor=([\w-]+)", console.get(LIST).content.decode())
    assert cursor is not None

    page = console.get(LIST + query.format(cursor=cursor[1])).content.decode()

    assert "data-socket" not in page
    assert "live.js" not in page
