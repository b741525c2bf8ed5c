"""Speech in the admin: rows and days of all organizations, read-only."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.keys.keys import mint
from accounts.models import Organization, Scope, User
from core.clock import now
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.ledger.commands import id_of
from usage.admin.read_only import MOST_COUNTED
from usage.ledger import rows
from usage.models import SpeechDay
from usage.receipts import SpeechReceipt

ROWS, DAYS = "/admin/usage/speechrow/", "/admin/usage/speechday/"


@pytest.fixture
def operator(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator@svc.example", "x"))
    return client


def write(**facts: Any) -> SpeechReceipt:
    one = speech_receipt(**facts)
    rows.insert([one])
    return one


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_neither_rows_nor_days_can_be_written_in_the_admin(operator: Client) -> None:
    row = write()
    for page, one in ((ROWS, row.request_id), (DAYS, SpeechDay.objects.get().pk)):
        assert operator.get(f"{page}add/").status_code == 403
        assert operator.get(f"{page}{one}/change/").status_code == 200
        assert operator.post(f"{page}{one}/change/", {"characters": "0"}).status_code == 403
        assert operator.post(f"{page}{one}/delete/", {"post": "yes"}).status_code == 403


def test_a_row_shows_its_facts_and_links_its_objects(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    api_key = mint(organization, Scope.SPEECH, "ivr").api_key
    row = write(organization_id=str(organization.pk), api_key_id=str(api_key.pk), characters=1234)

    page = shown(operator, f"{ROWS}{row.request_id}/change/")

    assert f'<a href="/admin/accounts/organization/{organization.pk}/change/">Northwind</a>' in page
    assert f'href="/admin/accounts/apikey/{api_key.pk}/change/"' in page
    for fact in ("amber", "espeak", "wav", "1234", "2500"):
        assert f'<div class="readonly">{fact}</div>' in page, fact


def test_the_list_shows_characters_and_audio_of_every_organization(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    write(organization_id=str(organization.pk), characters=12_345, audio_ms=83_250)
    gone = str(uuid.uuid4())
    write(organization_id=gone)

    page = shown(operator, ROWS)

    assert f'<a href="?q={organization.pk}">Northwind</a>' in page
    assert f'<a href="?q={gone}">{gone}</a>' in page
    assert "12,345" in page
    assert "83.250 s" in page


def test_the_list_can_be_narrowed(operator: Client) -> None:
    northwind = Organization.objects.create(name="Northwind")
    api_key = mint(northwind, Scope.SPEECH).api_key
    old = write(request_id=id_of(now() - timedelta(days=40)))
    fine = write()
    failed = write(
        organization_id=str(northwind.pk),
        api_key_id=str(api_key.pk),
        outcome="backend_timeout",
        response_format="opus",
        transport="websocket",
    )

    for query in (
        "outcome__exact=backend_timeout",
        "outcome=failed",
        "response_format__exact=opus",
        "transport__exact=websocket",
        f"q={northwind.pk}",
        "q=Northwind",
        f"q={api_key.prefix}",
        f"q={failed.request_id}",
    ):
        page = shown(operator, f"{ROWS}?{query}")
        assert failed.request_id in page, query
        assert fine.request_id not in page, query
    assert old.request_id not in shown(operator, ROWS)
    assert old.request_id in shown(operator, f"{ROWS}?admitted=any")
    assert failed.request_id not in shown(operator, f"{ROWS}?q=north")


def test_days_are_listed_by_organization_and_date(operator: Client) -> None:
    northwind = Organization.objects.create(name="Northwind")
    Organization.objects.create(name="Silent")
    today = now().date()
    for back, characters in ((0, 1111), (40, 2222)):
        day = today - timedelta(days=back)
        write(organization_id=str(northwind.pk), day=f"{day}", characters=characters)
    write(day=f"{today}", characters=3333)

    everything = shown(operator, DAYS)
    assert all(figure in everything for figure in ("1,111", "2,222", "3,333", "2.500 s"))
    searched = shown(operator, f"{DAYS}?q=Northwind")
    assert "1,111" in searched
    assert "3,333" not in searched
    assert "1,111" not in shown(operator, f"{DAYS}?q=Silent")
    assert "1,111" not in shown(operator, f"{DAYS}?q=nobody")
    recent = shown(operator, f"{DAYS}?day__gte={today}&day__lt={today + timedelta(days=1)}")
    assert "1,111" in recent
    assert "2,222" not in recent


@pytest.mark.parametrize("page", [ROWS, DAYS, "/admin/usage/usagerow/"])
def test_no_list_counts_a_whole_table_or_queries_for_each_row(operator: Client, page: str) -> None:
    for _ in range(10):
        write(organization_id=str(uuid.uuid4()))
        rows.insert([receipt(organization_id=str(uuid.uuid4()))])

    with CaptureQueriesContext(connection) as queries:
        shown(operator, page if page == DAYS else f"{page}?admitted=any&_facets=True")

    counts = [
        each["sql"]
        for each in queries
        if "COUNT(" in each["sql"].upper() and "usage" in each["sql"]
    ]
    assert counts
    assert all(f"LIMIT {MOST_COUNTED}" in sql for sql in counts)
    assert len(queries) < 8
