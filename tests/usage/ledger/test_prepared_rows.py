"""The writer's prepared statement on PostgreSQL, also where a pooler changes the connection behind it."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from tests.support.builders.receipts import receipt, speech_receipt
from usage.ledger import rows
from usage.models import SpeechRow, UsageRow
from usage.verification.rollups import verify

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def prepared() -> list[tuple[str, int]]:
    """The writer's statements on this connection, and how often each ran."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, generic_plans + custom_plans FROM pg_prepared_statements"
            " WHERE name LIKE 'svc%%' ORDER BY name"
        )
        return cursor.fetchall()  # type: ignore[no-any-return]  # rows of a text and a number


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(autouse=True)
def _new_connection() -> None:
    connection.close()


def test_a_connection_prepares_the_statement_of_each_table_once() -> None:
    for _ in range(3):
        rows.insert([receipt(), receipt()])
    rows.insert([receipt(), speech_receipt()])

    found = prepared()
    assert [name.rpartition("_")[0] for name, _ in found] == [
        f"svc_rows_{SpeechRow._meta.db_table}",
        f"svc_rows_{UsageRow._meta.db_table}",
    ]
    assert [count for _, count in found] == [1, 4]
    assert (UsageRow.objects.count(), SpeechRow.objects.count()) == (7, 1)


def test_a_statement_that_another_worker_prepared_is_used() -> None:
    """Behind a pooler: the worker's connection is new, and the one that it is given is not."""
    rows.insert([receipt()])
    ((name, _),) = prepared()
    connection.close()
    run(f"PREPARE {name}(json) AS SELECT json_array_length($1)::bigint")

    assert rows.insert([receipt()]) == 1
    assert [count for _, count in prepared()] == [1]


@pytest.mark.parametrize("times", [1, 2])
def test_a_connection_without_it_gets_the_rows_all_the_same(times: int) -> None:
    rows.insert([receipt()])
    for _ in range(times):
        run("DEALLOCATE ALL")
        assert rows.insert([receipt(), speech_receipt()]) == 2

    assert not [name for name, count in prepared() if count]
    verdict = verify(pytest.fail)
    assert (verdict.rows, verdict.speech_rows) == (1 + times, times)


def test_a_transaction_that_others_began_prepares_nothing() -> None:
    with transaction.atomic():
        rows.insert([receipt()])

    assert prepared() == []
    assert UsageRow.objects.count() == 1
