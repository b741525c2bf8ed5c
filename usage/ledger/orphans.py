"""Closing the requests of dead processes that left only their admissions in the database.

Only its lease shows whether a process is dead. But the database may have been away, or this
process; so only a process that has extended its own lease without a gap for the duration of the
other's lease may decide: every living process has had the time to extend its own by then.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import Any, Final

from django.db import connection, transaction
from django.db.models.expressions import RawSQL

from usage.ledger import postgresql_rows, rows
from usage.ledger.admissions import ADMISSIONS, OWNERS, OwnerLease, moment
from usage.ledger.journal import records
from usage.models import Admission
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

_SLICE: Final = 200
_DAY: Final = 24 * 60 * 60

_LEFT: Final = (
    f'SELECT EXISTS (SELECT 1 FROM "{ADMISSIONS}"), EXISTS (SELECT 1 FROM "{OWNERS}"), EXISTS ('  # noqa: S608
    f'SELECT 1 FROM "{ADMISSIONS}" WHERE closed_at IS NULL AND owner_id <> %s)'
)
_OPEN: Final = (
    f'SELECT request_id, CAST(record AS text) FROM "{ADMISSIONS}" '  # noqa: S608
    "WHERE owner_id = %s AND closed_at IS NULL AND request_id > %s ORDER BY request_id LIMIT %s"
)


def close_in_steps(
    lease: OwnerLease, before_statement: rows.BeforeStatement
) -> Generator[None, None, tuple[int, bool]]:
    """Write rows for the requests of dead processes, a slice each step.

    ``lease`` is that of this process. Return how many rows, and whether other processes have
    admissions: then this process must keep its lease, to find out which of them are dead. Raises
    ``django.db.Error``.
    """
    before_statement()
    with connection.cursor() as cursor:
        cursor.execute(_LEFT, [lease.key])
        admissions, owners, others = cursor.fetchone()
    closed = 0
    if others:
        for owner in _dead(lease, before_statement):
            closed += yield from _close_all(owner, before_statement)
    if closed:
        log.warning("ledger: closed %d requests of dead processes", closed)
    if admissions or owners:
        before_statement()
        _tidy()
    return closed, bool(others)


def _dead(lease: OwnerLease, before_statement: rows.BeforeStatement) -> list[Any]:
    """The owners of open admissions whose lease has run out, if this process may decide that."""
    lease_end = moment("-coalesce(owner.lease_seconds, me.lease_seconds)")
    before_statement()
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT DISTINCT admission.owner_id FROM "{ADMISSIONS}" AS admission '  # noqa: S608
            f'JOIN "{OWNERS}" AS me ON me.id = %s AND me.id <> admission.owner_id '
            f'LEFT JOIN "{OWNERS}" AS owner ON owner.id = admission.owner_id '
            f"WHERE admission.closed_at IS NULL AND me.alive_until > {moment()} "
            f"AND me.since <= {lease_end} AND coalesce(owner.alive_until < {moment()}, true)",
            [lease.key],
        )
        return [owner for (owner,) in cursor.fetchall()]


def _close_all(owner: Any, before_statement: rows.BeforeStatement) -> Generator[None, None, int]:
    closed, last = 0, ""
    while True:
        before_statement()
        with connection.cursor() as cursor:
            cursor.execute(_OPEN, [owner, last, _SLICE])
            found = cursor.fetchall()
        if not found:
            return closed
        last = found[-1][0]
        admitted = [receipt for _, record in found if (receipt := _read(record)) is not None]
        closed += _close(owner, admitted, before_statement)
        yield


def _tidy() -> None:
    """Delete closed admissions and leases that have ended.

    A closed admission is kept longer than any request runs, in case its owner lives after all.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f'DELETE FROM "{ADMISSIONS}" WHERE closed_at < {moment(str(-8 * _DAY))}'  # noqa: S608
        )
        cursor.execute(
            f'DELETE FROM "{OWNERS}" AS owner WHERE alive_until < {moment(str(-_DAY))} '  # noqa: S608
            f'AND NOT EXISTS (SELECT 1 FROM "{ADMISSIONS}" '
            "WHERE owner_id = owner.id AND closed_at IS NULL)"
        )


def _read(record: str) -> AnyReceipt | None:
    receipt = records.admitted_in(record)
    if receipt is None:
        log.error("ledger: an admission cannot be read; another version wrote it")
    return receipt


def _close(
    owner: Any, admitted: Sequence[AnyReceipt], before_statement: rows.BeforeStatement
) -> int:
    """Close requests of ``owner``; a row that the database refuses does not stop the others."""
    if not admitted:
        return 0
    before_statement()
    try:
        return _close_together(owner, admitted)
    except Exception as error:
        if not rows.is_refusal(error):
            raise
    if len(admitted) == 1:
        log.critical("ledger: the database refused row %s", admitted[0].request_id)
        return 0
    middle = len(admitted) // 2
    return _close(owner, admitted[:middle], before_statement) + _close(
        owner, admitted[middle:], before_statement
    )


def _close_together(owner: Any, admitted: Sequence[AnyReceipt]) -> int:
    with transaction.atomic():
        if _is_alive(owner):
            return 0
        ids = [each.request_id for each in admitted]
        locked = (
            Admission.objects.filter(request_id__in=ids, closed_at=None)
            .order_by("request_id")
            .select_for_update(skip_locked=True)
        )
        ours = set(locked.values_list("request_id", flat=True))
        lacking = rows.missing([each for each in admitted if each.request_id in ours])
        missing = {each.request_id for each in lacking}
        closed = rows.insert(lacking)
        now = RawSQL(moment(), [])  # noqa: S611  # ours
        Admission.objects.filter(request_id__in=missing).update(closed_at=now)
        Admission.objects.filter(request_id__in=ours - missing).delete()
    return closed


def _is_alive(owner: Any) -> bool:
    """Lock the lease of ``owner``, so that extending it waits; return whether it still runs."""
    is_shared = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_shared:
            postgresql_rows.limit(cursor)
        cursor.execute(
            f'SELECT alive_until >= {moment()} FROM "{OWNERS}" WHERE id = %s'  # noqa: S608
            f"{' FOR UPDATE' if is_shared else ''}",
            [owner],
        )
        found = cursor.fetchone()
    return found is not None and bool(found[0])
