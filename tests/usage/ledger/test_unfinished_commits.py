"""Rows that are stamped and not committed yet: no cursor passes them (PostgreSQL)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections

from core import clock
from core.ids import NIL_UUID
from svc_project.checks import locks_unreadable
from tests.support.builders.receipts import receipt
from tests.usage.ledger.conftest import SlowCommit
from usage.api import export
from usage.ledger import rows
from usage.ledger.admissions import NewAdmissions, OwnerLease
from usage.ledger.completeness import Completeness, completeness
from usage.ledger.orphans import close_in_steps
from usage.models import Admission, AdmissionOwner, UsageRow
from usage.queries.cursors import Cursor
from usage.queries.periods import Period
from usage.queries.selection import Filters

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

DAY = timedelta(days=1)


@pytest.fixture
def stranger() -> Iterator[str]:
    """A role that sees nothing of other sessions but what everybody sees."""
    name = f"svc_meter_{uuid.uuid4().hex[:8]}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {name}")
        yield name
        cursor.execute("RESET ROLE")
        cursor.execute(f"DROP ROLE {name}")


def test_a_row_stamped_while_a_page_is_read_is_not_passed(
    slow: SlowCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow writer and two quick ones stamp their rows between the two reads of a page."""
    pages = 0

    def ask_and_be_overtaken() -> Completeness:
        nonlocal pages
        pages += 1
        found = completeness()
        if pages == 1:
            slow.begin(after="SELECT pg_sleep(0.003)")
            rows.insert([receipt()])
            rows.insert([receipt()])
        return found

    monkeypatch.setattr(export, "completeness", ask_and_be_overtaken)
    monkeypatch.setattr("usage.api.export.time.sleep", lambda seconds: slow.end())
    period = Period(clock.now() - DAY, clock.now() + DAY)

    given: list[str] = []
    after: Cursor | None = None
    for _ in range(4):
        page = export.complete_page(str(NIL_UUID), period, Filters(), 1, after)
        slow.end()  # at the latest when the client has its page
        given += [str(row["request_id"]) for row in page.rows]
        after = page.next_cursor
        if after is None:
            break

    assert sorted(given) == sorted(UsageRow.objects.values_list("request_id", flat=True))
    assert len(given) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT 1", "UPDATE usage_admission SET closed_at = now()"),
        ("SET track_activities = off", "SELECT 1"),
    ],
    ids=["another last statement", "activities are not tracked"],
)
def test_a_writer_holds_the_ledger_back_until_its_commit_is_over(
    slow: SlowCommit, before: str, after: str
) -> None:
    slow.begin(before, after)
    time.sleep(0.002)  # the next millisecond
    found = completeness()
    slow.end()

    assert not found.covers(UsageRow.objects.get().occurred_at)
    assert found.now <= completeness().until


def test_a_role_that_sees_no_other_session_sees_the_writers(
    slow: SlowCommit, stranger: str
) -> None:
    slow.begin()
    time.sleep(0.002)
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {stranger}")
        found = completeness()
        cursor.execute("RESET ROLE")
    slow.end()

    assert not found.covers(UsageRow.objects.get().occurred_at)


def test_a_process_that_closes_the_requests_of_a_dead_one_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dead, ours = OwnerLease(1), OwnerLease(1)
    dead.extend()
    ours.extend()
    assert rows.insert_with_admissions((), NewAdmissions([receipt()], dead))[1]
    long_ago = clock.now() - DAY
    AdmissionOwner.objects.filter(pk=dead.owner).update(alive_until=long_ago)
    AdmissionOwner.objects.filter(pk=ours.owner).update(since=long_ago)
    seen: list[Completeness] = []
    update = Admission.objects.get_queryset().__class__.update

    def update_and_look(queryset: object, **facts: object) -> int:
        changed: int = update(queryset, **facts)  # type: ignore[arg-type]
        with ThreadPoolExecutor(1) as reader:
            seen.append(reader.submit(completeness).result())
            reader.submit(connections.close_all).result()
        return changed

    monkeypatch.setattr(Admission.objects.get_queryset().__class__, "update", update_and_look)
    for _ in close_in_steps(ours, lambda: None):
        pass
    monkeypatch.undo()

    row = UsageRow.objects.get()
    assert seen
    assert not seen[-1].covers(row.occurred_at)


def test_a_role_that_may_not_read_locks_is_named(stranger: str) -> None:
    assert locks_unreadable(["default"]) == []
    with connection.cursor() as cursor:
        cursor.execute("REVOKE SELECT ON pg_locks FROM PUBLIC")
        try:
            cursor.execute(f"SET ROLE {stranger}")
            found = locks_unreadable(["default"])
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute("GRANT SELECT ON pg_locks TO PUBLIC")

    assert [each.id for each in found] == ["svc.W011"]
