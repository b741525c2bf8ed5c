"""Batches of which the database refuses some rows, and the heartbeat."""

from __future__ import annotations

import pytest
from django.db import Error, connection

from tests.support.builders.receipts import receipt, speech_receipt
from usage.ledger import rows
from usage.models import SpeechRow, UsageRollup, UsageRow
from usage.receipts import AnyReceipt

pytestmark = pytest.mark.django_db(transaction=True)


def nothing() -> None:
    """Called before each statement."""


@pytest.mark.parametrize("bad_places", [[0], [7], [3, 4], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_refused_rows_are_returned_and_the_others_are_written(bad_places: list[int]) -> None:
    batch: list[AnyReceipt] = [
        receipt(generated_output_tokens=1, delivered_output_tokens=2)
        if place in bad_places
        else receipt()
        for place in range(8)
    ]
    batch.insert(4, speech_receipt())

    inserted = rows.insert_accepted(batch, nothing)

    assert inserted.new == 9 - len(bad_places)
    assert [each.request_id for each in inserted.refused] == [
        each.request_id
        for each in batch
        if getattr(each, "delivered_output_tokens", 0) > getattr(each, "generated_output_tokens", 0)
    ]
    assert UsageRow.objects.count() == 8 - len(bad_places)
    assert SpeechRow.objects.count() == 1


def test_a_heartbeat_leaves_no_row() -> None:
    rows.heartbeat()

    assert not UsageRow.objects.exists()
    assert not SpeechRow.objects.exists()
    assert not UsageRollup.objects.exists()


def test_a_heartbeat_fails_where_nothing_can_be_written() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SET default_transaction_read_only = on"
            if connection.vendor == "postgresql"
            else "PRAGMA query_only = on"
        )
    try:
        with pytest.raises(Error):
            rows.heartbeat()
    finally:
        connection.close()
