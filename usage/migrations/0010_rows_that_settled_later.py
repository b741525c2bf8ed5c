"""Pruned months keep out what they have archived, and nothing else (``usage.retention.prune``).

A row belongs to the later of two months: that of its id and that in which it was settled. The
triggers of 0007 looked at the id only. They left out, without an error on PostgreSQL, every new row
of a host whose clock was in a pruned month. A row that is kept out is now an error, so that the
writer keeps it in a file.
"""

from django.db import migrations

_POSTGRESQL = """
CREATE OR REPLACE FUNCTION usage_keep_out_pruned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM usage_prunedmonth
        WHERE NEW.request_id < end_id COLLATE "C"
            AND NEW.occurred_at < (first + interval '1 month') AT TIME ZONE 'UTC'
            AND (NEW.request_id >= first_id COLLATE "C"
                OR NEW.occurred_at >= first::timestamp AT TIME ZONE 'UTC')
    ) THEN
        RAISE EXCEPTION 'usage row % belongs to a pruned month', NEW.request_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""
_SQLITE = (
    "DROP TRIGGER usage_keep_out_pruned",
    "CREATE TRIGGER usage_keep_out_pruned BEFORE INSERT ON usage_usagerow"
    " WHEN EXISTS (SELECT 1 FROM usage_prunedmonth WHERE NEW.request_id < end_id"
    " AND NEW.occurred_at < date(first, '+1 month')"
    " AND (NEW.request_id >= first_id OR NEW.occurred_at >= first))"
    " BEGIN SELECT RAISE(ABORT, 'a usage row of a pruned month'); END",
)


def _replace_trigger(apps, schema_editor) -> None:
    statements = [_POSTGRESQL] if schema_editor.connection.vendor == "postgresql" else _SQLITE
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0009_throttle_writers'),
    ]

    operations = [migrations.RunPython(_replace_trigger, migrations.RunPython.noop)]
