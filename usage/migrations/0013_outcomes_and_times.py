"""Outcomes and buckets of times in the sums of chats, which say how many failed and how long they took.

Each statement changes a table's description only, as in 0011. Sums of earlier rows have zeros: upkeep fills
them from the rows (``usage.verification.fill``).
"""

from django.db import migrations, models

_OUTCOMES = (
    *("success", "client_disconnected", "backend_rejected", "backend_unavailable"),
    *("backend_timeout", "backend_protocol_error", "backend_error", "internal_error", "interrupted"),
)
_NAMES = (
    *(f"outcome_{each}" for each in _OUTCOMES),
    *(f"duration_{number:02}" for number in range(26)),
    *(f"first_token_{number:02}" for number in range(26)),
)
_TABLES = ("usage_usagerollup", "usage_usageday", "usage_prunedsum")


def _change(schema_editor, verb, kind):
    parts = [f"{verb} COLUMN {name} {kind}" for name in _NAMES]
    for table in _TABLES:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"ALTER TABLE {table} {', '.join(parts)}")
        else:
            for part in parts:
                schema_editor.execute(f"ALTER TABLE {table} {part}")


def add(apps, schema_editor):
    _change(schema_editor, "ADD", "integer DEFAULT 0 NOT NULL")


def drop(apps, schema_editor):
    _change(schema_editor, "DROP", "")


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0012_refusals'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add, drop)],
            state_operations=[
                migrations.AddField(
                    model_name=model, name=name, field=models.IntegerField(db_default=0)
                )
                for model in ('usagerollup', 'usageday', 'prunedsum')
                for name in _NAMES
            ],
        ),
    ]
