"""Counts of refused requests by hour: the keys of the two tables, and how counts are added to them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connection, models

from usage.models import RefusalCount, ThrottleCount

KEPT: Final = timedelta(days=100)
NOT_COUNTED: Final = "not_counted"
"""The scope of a marker row without an organization: a process served with counting disabled."""


class ThrottleKey(NamedTuple):
    """The key of a count of 429 by limit, in the order of the table's key; ids are UUID texts."""

    organization_id: str
    hour: datetime
    api_key_id: str
    model_identifier: str
    limit_scope: str


class ErrorKey(NamedTuple):
    """The key of a count of refusals by error, likewise."""

    organization_id: str
    hour: datetime
    api_key_id: str
    model_identifier: str
    error: str


def add_throttled(counted: Counter[ThrottleKey]) -> None:
    """Add counts, in key order, so that two writers never deadlock. Raises ``django.db.Error``."""
    _add(ThrottleCount, ThrottleKey._fields, counted)


def add_refused(counted: Counter[ErrorKey]) -> None:
    """Likewise."""
    _add(RefusalCount, ErrorKey._fields, counted)


def _add(model: type[models.Model], fields: tuple[str, ...], counted: Counter[Any]) -> None:
    table, key = model._meta.db_table, ", ".join(fields)
    with connection.cursor() as cursor:
        cursor.executemany(
            f'INSERT INTO {table} ({key}, "count") VALUES (%s, %s, %s, %s, %s, %s) '  # noqa: S608
            f'ON CONFLICT ({key}) DO UPDATE SET "count" = {table}."count" + excluded."count"',
            [_columns(each, counted[each]) for each in sorted(counted)],
        )


def _columns(key: ThrottleKey | ErrorKey, count: int) -> list[Any]:
    uuid_field = models.UUIDField()
    return [
        uuid_field.get_db_prep_value(key.organization_id, connection),
        connection.ops.adapt_datetimefield_value(key.hour),
        uuid_field.get_db_prep_value(key.api_key_id, connection),
        *key[3:],
        count,
    ]
