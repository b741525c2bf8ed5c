"""Speech in the admin: rows and days of all organizations, read-only as those of chats."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Organization
from core.clock import now
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.pages.console import page_at
from usage.admin.read_only import MOST_COUNTED
from usage.ledger import rows
from usage.models import SpeechDay
from usage.receipts import SpeechReceipt

ROWS, DAYS = "/admin/usage/speechrow/", "/admin/usage/speechday/"
CHATS = "/admin/usage/usagerow/"


def write(**facts: Any) -> SpeechReceipt:
    one = speech_receipt(**facts)
    rows.insert([one])
    return one


def test_neither_rows_nor_days_can_be_written_in_the_admin(operator: Client) -> None:
    row, chat = write(characters=1234), receipt()
    rows.insert([chat])
    pages = ((ROWS, row.request_id), (DAYS, SpeechDay.objects.get().pk), (CHATS, chat.request_id))
    for page, one in pages:
        assert operator.get(f"{page}add/").status_code == 403
        assert operator.get(f"{page}{one}/change/").status_code == 200
        assert operator.post(f"{page}{one}/change/", {"characters": "0"}).status_code == 403
        assert operator.post(f"{page}{one}/delete/", {"post": "yes"}).status_code == 403
    assert "1,234" in page_at(operator, ROWS)


def test_days_are_listed_by_organization_and_date(operator: Client) -> None:
    northwind = Organization.objects.create(name="Northwind")
    Organization.objects.create(name="Silent")
    today = now().date()
    for back, characters in ((0, 1111), (40, 2222)):
        day = today - timedelta(days=back)
        write(organization_id=str(northwind.pk), day=f"{day}", characters=characters)
    write(day=f"{today}", characters=3333)

    everything = page_at(operator, DAYS)
    assert all(figure in everything for figure in ("1,111", "2,222", "3,333", "2.5 s"))
    searched = page_at(operator, f"{DAYS}?q=Northwind")
    assert "1,111" in searched
    assert "3,333" not in searched
    assert "1,111" not in page_at(operator, f"{DAYS}?q=Silent")
    assert "1,111" not in page_at(operator, f"{DAYS}?q=nobody")
    recent = page_at(operator, f"{DAYS}?day__gte={today}&day__lt={today + timedelta(days=1)}")
    assert "1,111" in recent
    assert "2,222" not in recent


@pytest.mark.parametrize("page", [ROWS, DAYS, CHATS])
def test_no_list_counts_a_whole_table_or_queries_for_each_row(operator: Client, page: str) -> None:
    for _ in range(10):
        write(organization_id=str(uuid.uuid4()))
        rows.insert([receipt(organization_id=str(uuid.uuid4()))])

    with CaptureQueriesContext(connection) as queries:
        page_at(operator, page if page == DAYS else f"{page}?admitted=any&_facets=True")

    counts = [
        each["sql"]
        for each in queries
        if "COUNT(" in each["sql"].upper() and "usage" in each["sql"]
    ]
    assert counts
    assert all(f"LIMIT {MOST_COUNTED}" in sql for sql in counts)
    assert len(queries) < 8
