"""What a page of requests reads when requests have ended since."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from accounts.keys.keys import NewKey
from accounts.models import Membership, Organization, User
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.pages.console import Insert, ago, page_at
from tests.usage.console.test_requests import older
from usage.ledger import rows

LIST = "/console/requests"


def _named(page: str, name: str) -> str:
    found = re.search(rf'data-{name}="([^"]+)"', page)
    assert found is not None
    return html.unescape(found[1])


def _watched(page: str) -> tuple[str, str]:
    """The address of newer rows that ``page`` names, and its cursor."""
    return _named(page, "newer"), _named(page, "after")


def _ids(page: str) -> list[str]:
    return re.findall(r'data-row="\S+ (\w+)"', page)


def _newer(console: Client, address: str, after: str) -> str:
    return page_at(console, f"{address}&after={after}")


def test_rows_that_ended_since_follow_once_and_all(console: Client, insert: Insert) -> None:
    early = insert(ago(minutes=1)).request_id
    page = console.get(LIST).content.decode()
    address, after = _watched(page)
    shown = _ids(page)
    assert shown == [early]

    for count in (1, 3, 2):
        new = [insert(ago()).request_id for _ in range(count)]
        found = _newer(console, address, after)
        after = _named(found, "after")
        assert "data-whole" not in found
        # Rows of running commits may come again; the script leaves out what it shows already.
        shown += [each for each in _ids(found) if each not in shown]
        assert set(new) <= set(shown)

    assert len(shown) == 7


@pytest.mark.sqlite
def test_a_row_that_becomes_visible_late_is_not_missed(console: Client, insert: Insert) -> None:
    """Two writers may commit in another order than that of their rows' times."""
    address, after = _watched(console.get(LIST).content.decode())
    later = insert(ago()).request_id
    after = _named(_newer(console, address, after), "after")
    # SQLite's rows count as complete after two seconds; PostgreSQL knows which commits still run.
    late = insert(ago(seconds=0.2)).request_id

    found = _ids(_newer(console, address, after))

    assert set(found) >= {late}
    assert found == [later, late] or found == [late]


def test_more_than_a_page_replaces_the_list(console: Client, insert: Insert) -> None:
    insert(ago(minutes=1))
    address, after = _watched(console.get(LIST).content.decode())
    new = [insert(ago(seconds=-number / 1000)).request_id for number in range(60)]

    found = _newer(console, address, after)

    assert "data-whole" in found
    assert _ids(found) == new[:-51:-1]
    rest = _ids(page_at(console, f"{LIST}{older(found)}"))
    assert rest[:10] == new[9::-1]


def test_the_filters_of_the_page_apply(console: Client, insert: Insert, key: NewKey) -> None:
    query = f"?outcome=failed&model=acme/a&api_key_id={key.api_key.pk}"
    address, after = _watched(console.get(LIST + query).content.decode())
    facts = {"api_key_id": str(key.api_key.pk), "model_identifier": "acme/a"}
    failed = {"outcome": "backend_error", "http_status": 502, "error_code": "backend_error"}
    insert(ago(), **facts)
    insert(ago(), **{**facts, **failed, "model_identifier": "acme/b"})
    insert(ago(), **failed, model_identifier="acme/a")
    wanted = insert(ago(), **facts, **failed).request_id

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
        insert(ago(seconds=number))
    cursor = re.search(r"cursor=([\w-]+)", console.get(LIST).content.decode())
    assert cursor is not None

    page = console.get(LIST + query.format(cursor=cursor[1])).content.decode()

    assert "data-socket" not in page
    assert "live.js" not in page
