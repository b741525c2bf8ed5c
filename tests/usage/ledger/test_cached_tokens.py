"""Tokens that a model server had cached: on the row and in the sums, beside a release that knows neither."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.db import models

from tests.inference.models.test_release_before import rewritten_without
from tests.support.builders.receipts import admitted, progress, receipt
from tests.support.ledger.commands import differences, run
from tests.support.ledger.ledgers import read_segment
from usage.ledger import rows
from usage.ledger.journal import records
from usage.ledger.journal.journal import Journal
from usage.models import PrunedSum, UsageDay, UsageRollup, UsageRow, shards
from usage.models.health_sums import HEALTH_SUMS
from usage.models.statements import CACHE_SUMS
from usage.queries import days
from usage.receipts import Progress, Receipt

pytestmark = pytest.mark.django_db

HOUR = datetime(2025, 11, 5, 10, tzinfo=UTC)
NEW = {"cached_input_tokens", "model_server", "attempts", "queue_ms"}
TABLES: tuple[type[models.Model], ...] = (UsageRow, UsageRollup, UsageDay, PrunedSum)
OWN: dict[type[models.Model], dict[str, Any]] = {
    UsageRow: dict.fromkeys(NEW),
    **dict.fromkeys(TABLES[1:], dict.fromkeys((*CACHE_SUMS, *HEALTH_SUMS), 0)),
}
"""The columns of each table that release 0.5 does not know, with what they are where it writes a row."""


def known_to_release_before(struct: type[msgspec.Struct], **options: Any) -> Any:
    """``struct`` as release 0.5 has it."""
    return msgspec.defstruct(
        struct.__name__,
        [
            (each.name, each.type, each.default)
            if each.default is not msgspec.NODEFAULT
            else (each.name, each.type)
            for each in msgspec.structs.fields(struct)
            if each.name not in NEW
        ],
        **options,
    )


def write(*cached: int | None, **facts: Any) -> list[Receipt]:
    receipts = [
        receipt(backend_reported_input_tokens=100, cached_input_tokens=each, **facts)
        for each in cached
    ]
    rows.insert(receipts, HOUR)
    return receipts


def summed(table: type[models.Model]) -> Sequence[tuple[int, int, int]]:
    names = ("requests", *CACHE_SUMS)
    found: Sequence[tuple[int, int, int]] = list(table._default_manager.values_list(*names))
    return found


def test_rows_and_sums_have_what_was_reported() -> None:
    receipts = write(None, 0, 60)

    found = UsageRow.objects.in_bulk([each.request_id for each in receipts])
    assert [found[each.request_id].cached_input_tokens for each in receipts] == [None, 0, 60]
    assert summed(UsageRollup) == [(3, 60, 200)]
    days.sum_closed_days()
    assert summed(UsageDay) == [(3, 60, 200)]
    assert differences() == []


@pytest.mark.postgresql
def test_merged_shards_keep_them() -> None:
    write(60)
    UsageRollup.objects.update(shard=3)
    write(20)

    assert shards.merge(datetime.now(UTC)) == 1

    assert summed(UsageRollup) == [(2, 80, 200)]


def test_more_cached_than_there_were_is_found() -> None:
    (one,) = write(101)

    assert differences() == [f"{one.request_id}: cached tokens exceed input tokens"]


@pytest.mark.parametrize("name", CACHE_SUMS)
def test_sums_that_the_release_before_made_are_no_difference_and_can_be_rebuilt(name: str) -> None:
    write(60, 20)
    days.sum_closed_days()
    for table in (UsageRollup, UsageDay):
        table._default_manager.update(**{name: 0})

    assert differences() == []

    run("rebuild_rollups")
    assert summed(UsageRollup) == summed(UsageDay) == [(2, 80, 200)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_the_release_before_writes_to_this_schema(table: type[models.Model]) -> None:
    write(None)
    days.sum_closed_days()
    of_hours = [each.attname for each in PrunedSum._meta.concrete_fields]
    PrunedSum.objects.create(**UsageRollup.objects.values(*of_hours).get())
    row = table._default_manager.values().get()

    assert rewritten_without(table, OWN[table]) == row | OWN[table]


def test_a_journal_of_the_release_before_becomes_rows() -> None:
    old_receipt = known_to_release_before(Receipt, kw_only=True)
    old_progress = known_to_release_before(Progress, array_like=True)
    running, ended = admitted(), receipt()
    lines = [
        {"admitted": msgspec.convert(running, old_receipt, from_attributes=True), "v": 2},
        {"progress": old_progress(running.request_id, 11, 7, 0, 7, 7), "v": 2},
        {"settled": msgspec.convert(ended, old_receipt, from_attributes=True), "v": 2},
    ]

    found = read_segment(b"".join(records.framed(msgspec.json.encode(line)) for line in lines))

    assert not found.damaged
    last_seen = found.running[running.request_id]
    assert isinstance(last_seen, Receipt)
    assert last_seen.backend_reported_output_tokens == 7
    rows.insert([*found.running.values(), *found.settled.values()])
    assert set(UsageRow.objects.values_list("cached_input_tokens", flat=True)) == {None}


def test_the_release_before_reads_a_journal_of_this_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 1_000_000)
    running, ended = admitted(), receipt(cached_input_tokens=3)
    journal.admitted(running)
    journal.progress(
        msgspec.structs.replace(progress(running.request_id, 7), cached_input_tokens=5)
    )
    journal.settled(ended)
    (path,) = tmp_path.glob("*.log")
    content = path.read_bytes()
    journal.close()
    old_record = msgspec.defstruct(
        "Record",
        [
            ("admitted", known_to_release_before(Receipt, kw_only=True) | None, None),
            ("progress", known_to_release_before(Progress, array_like=True) | None, None),
            ("settled", known_to_release_before(Receipt, kw_only=True) | None, None),
            ("v", int, 1),
        ],
    )

    read: list[Any] = [
        msgspec.json.decode(line[9:], type=old_record) for line in content.split(b"\n") if line
    ]

    assert {each.v for each in read} == {2}, "it accepts version 2"
    (counts,) = [each.progress for each in read if each.progress]
    assert counts.delivered_output_tokens == 7
    (settled,) = [each.settled for each in read if each.settled]
    assert settled.request_id == ended.request_id

    (last_seen,) = read_segment(content).running.values()
    assert isinstance(last_seen, Receipt)
    assert last_seen.cached_input_tokens == 5


def test_sums_are_by_organization() -> None:
    mine = str(uuid.uuid4())
    write(60, organization_id=mine)
    write(20)

    assert UsageRollup.objects.get(organization_id=mine).cached_input_tokens == 60
