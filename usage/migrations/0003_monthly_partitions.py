"""On PostgreSQL the ledger becomes a table partitioned by month (``usage.models.partitions``).

The primary key also holds ``organization_id``, the column that a distributed engine would
distribute by; an id belongs to one organization for ever, so it is no less unique.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations
from django.utils import timezone

def _partition(apps, schema_editor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    from usage.models import partitions

    columns = _columns(schema_editor)
    schema_editor.execute("ALTER TABLE usage_usagerow RENAME TO usage_usagerow_plain")
    definitions = ", ".join(
        f"{name} {kind}" + (' COLLATE "C"' if name == "request_id" else "") + null
        for name, kind, null in columns
    )
    schema_editor.execute(
        f"CREATE TABLE usage_usagerow ({definitions}) PARTITION BY RANGE (request_id)"
    )
    for name, definition in _checks(schema_editor):
        schema_editor.execute(f'ALTER TABLE usage_usagerow_plain DROP CONSTRAINT "{name}"')
        schema_editor.execute(f'ALTER TABLE usage_usagerow ADD CONSTRAINT "{name}" {definition}')
    schema_editor.execute("DROP INDEX usage_by_organization")
    schema_editor.execute(
        "ALTER TABLE usage_usagerow ADD CONSTRAINT usage_usagerow_key"
        " PRIMARY KEY (request_id, organization_id)"
    )
    schema_editor.execute(
        "CREATE INDEX usage_by_organization"
        " ON usage_usagerow (organization_id, occurred_at, request_id)"
    )
    schema_editor.execute(
        f"CREATE TABLE {partitions.DEFAULT_PARTITION} PARTITION OF usage_usagerow DEFAULT"
    )
    partitions.ensure(timezone.now())
    names = ", ".join(name for name, _, _ in columns)
    schema_editor.execute(
        f"INSERT INTO usage_usagerow ({names}) SELECT {names} FROM usage_usagerow_plain"
    )
    schema_editor.execute("DROP TABLE usage_usagerow_plain")


def _columns(schema_editor) -> list[tuple[str, str, str]]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod),"
            " CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END FROM pg_attribute"
            " WHERE attrelid = 'usage_usagerow'::regclass AND attnum > 0 AND NOT attisdropped"
            " ORDER BY attnum"
        )
        return cursor.fetchall()


def _checks(schema_editor) -> list[tuple[str, str]]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid = 'usage_usagerow_plain'::regclass AND contype = 'c'"
        )
        return cursor.fetchall()


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("usage", "0002_rollups_and_throttle_counts")]

    operations: ClassVar[list[migrations.RunPython]] = [
        migrations.RunPython(_partition, migrations.RunPython.noop),
    ]
