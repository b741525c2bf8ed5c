"""Closing the requests of processes that died and left nothing but their notes in the database.

Whether a process is dead is known from its lease alone. It may be the database that was away, or
this process, so only one that has extended its own lease without a gap for as long as that of the
other lasts says so: every process that lives has had the time to extend its own by then.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import Final

from django.db import connection, transaction

from usage import batches, records, rows
from usage.admissions import NOTES, OWNERS, Lease
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

_SLICE: Final = 200

_DEAD: Final = (
    f'SELECT DISTINCT note.owner_id FROM "{NOTES}" AS note '  # noqa: S608
    f'JOIN "{OWNERS}" AS me ON me.id = %(me)s AND me.id <> note.owner_id '
    f'LEFT JOIN "{OWNERS}" AS owner ON owner.id = note.owner_id '
    "WHERE note.closed_at IS NULL AND me.alive_until > clock_timestamp() "
    "AND me.since <= clock_timestamp() - make_interval(secs => "
    "coalesce(owner.lease_seconds, me.lease_seconds)) "
    "AND coalesce(owner.alive_until < clock_timestamp(), true)"
)
_OPEN: Final = (
    f'SELECT request_id, record::text FROM "{NOTES}" WHERE owner_id = %s AND closed_at IS NULL '  # noqa: S608
    "AND request_id > %s ORDER BY request_id LIMIT %s"
)
# An owner that extends its lease now waits for this, and so do its next notes.
_LIVES: Final = f'SELECT alive_until >= clock_timestamp() FROM "{OWNERS}" WHERE id = %s FOR UPDATE'  # noqa: S608
_LOCK: Final = (
    f'SELECT request_id FROM "{NOTES}" WHERE request_id = ANY (%s) AND closed_at IS NULL '  # noqa: S608
    "ORDER BY request_id FOR UPDATE SKIP LOCKED"
)
# A closed note is kept for an owner that lives after all, and longer than any request runs.
_TIDY: Final = (
    f"DELETE FROM \"{NOTES}\" WHERE closed_at < clock_timestamp() - interval '8 days'",  # noqa: S608
    f"DELETE FROM \"{OWNERS}\" AS owner WHERE alive_until < clock_timestamp() - interval '1 day' "  # noqa: S608
    f'AND NOT EXISTS (SELECT FROM "{NOTES}" WHERE owner_id = owner.id AND closed_at IS NULL)',
)


def close_in_steps(lease: Lease, asking: batches.Asking) -> Generator[None, None, int]:
    """Write rows for the requests of dead processes, a slice each step; returns how many.

    ``lease`` is that of this process. Raises ``django.db.Error``.
    """
    asking()
    with connection.cursor() as cursor:
        cursor.execute(_DEAD, {"me": lease.owner})
        dead = [str(owner) for (owner,) in cursor.fetchall()]
    closed = 0
    for owner in dead:
        last = ""
        while True:
            asking()
            with connection.cursor() as cursor:
                cursor.execute(_OPEN, [owner, last, _SLICE])
                found = cursor.fetchall()
            if not found:
                break
            last = found[-1][0]
            notes = [receipt for _, record in found if (receipt := _read(record)) is not None]
            closed += _close(owner, notes, asking)
            yield
    if closed:
        log.warning("ledger: %d requests of dead processes elsewhere were closed", closed)
    asking()
    with connection.cursor() as cursor:
        for statement in _TIDY:
            cursor.execute(statement, [])
    return closed


def _read(record: str) -> AnyReceipt | None:
    receipt = records.admitted_in(record)
    if receipt is None:
        log.error("ledger: a note of an admission cannot be read; it is of another version")
    return receipt


def _close(owner: str, notes: Sequence[AnyReceipt], asking: batches.Asking) -> int:
    """Close requests of ``owner``; one that the database refuses holds up no other."""
    if not notes:
        return 0
    asking()
    try:
        return _close_together(owner, notes)
    except Exception as error:
        if not batches.is_refusal(error):
            raise
    if len(notes) == 1:
        log.critical("ledger: row %s is refused by the database", notes[0].request_id)
        return 0
    middle = len(notes) // 2
    return _close(owner, notes[:middle], asking) + _close(owner, notes[middle:], asking)


def _close_together(owner: str, notes: Sequence[AnyReceipt]) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        rows.limit(cursor)
        cursor.execute(_LIVES, [owner])
        if (found := cursor.fetchone()) is not None and found[0]:
            return 0
        cursor.execute(_LOCK, [[note.request_id for note in notes]])
        ours = {request_id for (request_id,) in cursor.fetchall()}
        lacking = batches.missing([note for note in notes if note.request_id in ours])
        ids = [note.request_id for note in lacking]
        closed = rows.insert(lacking, keep_notes=True)
        cursor.execute(
            f'UPDATE "{NOTES}" SET closed_at = clock_timestamp() WHERE request_id = ANY (%s)',  # noqa: S608
            [ids],
        )
        cursor.execute(
            f'DELETE FROM "{NOTES}" WHERE request_id = ANY (%s)',  # noqa: S608
            [sorted(ours - set(ids))],
        )
    return closed
