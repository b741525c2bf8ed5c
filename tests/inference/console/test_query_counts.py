"""The queries of the console's pages are few, and do not grow with keys, rows and models."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.keys.keys import NewKey, mint
from accounts.models import Organization, Scope
from tests.support.builders import catalog_rows
from tests.support.pages.console import Insert, ago
from usage.models import UsageRow

MOST = {
    "": 31,
    "models": 14,
    "models/acme/model-3-0": 17,
    "keys": 13,
    "keys/{key_id}": 11,
    "playground": 8,
    "requests": 9,
    "requests?outcome=failed": 9,
    "requests?surface=speech&voice=ava": 9,
    "requests/{request_id}": 6,
    "usage": 19,
    "keys/new": 5,
    "keys/{key_id}/rotate": 5,
    "keys/{key_id}/revoke": 5,
    "password": 5,
    "usage/totals.csv?by=day": 12,
    "usage/totals.csv?by=model": 12,
    "usage/totals.csv?by=key": 12,
}


def test_without_limits_the_overview_reads_sums_and_no_row(
    console: Client, insert: Insert, organization: Organization
) -> None:
    organization.requests_per_minute = organization.tokens_per_minute = None
    organization.save()
    for minutes in (0, 90, 24 * 60 - 1, 31 * 24 * 60):
        insert(ago(minutes=minutes))

    with CaptureQueriesContext(connection) as queries:
        assert console.get("/console/").status_code == 200

    assert [each["sql"] for each in queries if UsageRow._meta.db_table in each["sql"]] == []


@pytest.mark.parametrize(("path", "most"), MOST.items())
def test_a_page_takes_few_queries_however_much_there_is(
    console: Client,
    insert: Insert,
    organization: Organization,
    key: NewKey,
    path: str,
    most: int,
) -> None:
    counts: list[int] = []
    for _ in range(2):
        for number in range(6):
            catalog_rows.published(f"acme/model-{number}-{len(counts)}")
            made = mint(organization, Scope.INFERENCE, f"key {number}")
            at = ago(hours=number + 1)
            row = insert(at, api_key_id=str(made.api_key.pk), model_identifier=f"acme/{number}")
        address = path.format(request_id=row.request_id, key_id=key.api_key.pk)
        with CaptureQueriesContext(connection) as queries:
            answer = console.get(f"/console/{address}")
            _ = b"".join(answer) if answer.streaming else answer.content
        assert answer.status_code == 200
        counts.append(len(queries))

    assert counts[1] <= counts[0]
    assert counts[0] <= most, [each["sql"] for each in queries]
