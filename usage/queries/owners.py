"""Finds the organizations that have roll-ups, also those that exist no more."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

from usage.models import UsageRollup

_HOURS: Final = UsageRollup._meta.db_table

OWNERS: Final = f"""
WITH RECURSIVE owner(id) AS (
    SELECT * FROM (SELECT organization_id FROM {_HOURS} ORDER BY organization_id LIMIT 1) AS first
    UNION ALL
    SELECT (SELECT organization_id FROM {_HOURS} WHERE organization_id > owner.id
            ORDER BY organization_id LIMIT 1)
    FROM owner WHERE owner.id IS NOT NULL
)
"""  # noqa: S608  # names are ours
"""SQL of the table ``owner``, whose last ``id`` is null. It steps through the roll-ups' key, because
DISTINCT would read all of them."""


def owners(most: int) -> list[Any] | None:
    """Return the organizations' ids for a query, or None when there are more than ``most``."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{OWNERS} SELECT id FROM owner WHERE id IS NOT NULL LIMIT %s",  # noqa: S608
            [most + 1],
        )
        found = [each for (each,) in cursor.fetchall()]
    return found if len(found) <= most else None
