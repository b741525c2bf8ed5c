"""Triggers that keep weights records, prices and published identifiers as they are.

They stop what goes past the ORM. On SQLite they guard against changes only: its ``flush`` deletes
row by row, which a guard against deletion would stop too, while PostgreSQL's truncates. There the
models and querysets refuse a deletion (``inference.models.Unchangeable``).

A later migration that alters one of these tables on SQLite remakes it and drops its triggers: end
such a migration with ``RunPython`` of ``create_triggers``. ``tests/inference/models/test_catalog_rows.py``
fails when that was forgotten.
"""

from django.db import migrations

ENTRY_MOVED = """
    OLD.published_at IS NOT NULL AND (
        NEW.id <> OLD.id OR NEW.identifier <> OLD.identifier OR NEW.weights_id <> OLD.weights_id
        OR NEW.published_at IS NULL OR NEW.published_at <> OLD.published_at
    )
"""
ENTRY_IS_PUBLISHED = "OLD.published_at IS NOT NULL"
PRICED_ENTRY_IS_PUBLISHED = """
    (SELECT published_at FROM inference_modelentry WHERE id = OLD.entry_id) IS NOT NULL
"""

# name, verb, table, condition, message
CHANGES = [
    ("weights_never_change", "UPDATE", "inference_weightsrecord", "1 = 1",
     "a weights record never changes"),
    ("prices_never_change", "UPDATE", "inference_price", "1 = 1", "a price never changes"),
    ("published_entries_stay_pinned", "UPDATE", "inference_modelentry", ENTRY_MOVED,
     "a published entry keeps its identifier, weights and date"),
]
DELETIONS = [
    ("prices_stay", "DELETE", "inference_price", PRICED_ENTRY_IS_PUBLISHED,
     "a price of a published entry stays"),
    ("published_entries_stay", "DELETE", "inference_modelentry", ENTRY_IS_PUBLISHED,
     "a published entry cannot be deleted"),
]


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for name, verb, table, condition, message in CHANGES:
            schema_editor.execute(
                f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {verb} ON {table} FOR EACH ROW "
                f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END",
                params=None,
            )
        return
    for name, verb, table, condition, message in CHANGES + DELETIONS:
        kept = "NEW" if verb == "UPDATE" else "OLD"
        schema_editor.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {condition} THEN RAISE EXCEPTION '{message}' "
            "USING ERRCODE = 'integrity_constraint_violation'; END IF; "
            f"RETURN {kept}; END $$",
            params=None,
        )
        schema_editor.execute(
            f"CREATE OR REPLACE TRIGGER {name} BEFORE {verb} ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()",
            params=None,
        )


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for name, *_ in CHANGES:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}", params=None)
        return
    for name, *_ in CHANGES + DELETIONS:
        schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE", params=None)


class Migration(migrations.Migration):

    dependencies = [("inference", "0001_catalog")]

    operations = [migrations.RunPython(create_triggers, drop_triggers)]
