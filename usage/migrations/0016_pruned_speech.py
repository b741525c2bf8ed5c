"""Adds ``pruned`` to the watermark: rows before it are deleted, and their sums stay (``usage.retention.speech``).

The triggers no longer lower the watermark for a row before ``pruned`` that is written, changed or deleted.
"""

from django.db import migrations, models

_POSTGRESQL = """
CREATE OR REPLACE FUNCTION usage_lower_speech_watermark_to(organization uuid, changed timestamptz)
RETURNS void LANGUAGE sql AS $$
    -- Locks the watermark even where it is low enough: an hour is summed with this change or after.
    INSERT INTO usage_speechwatermark AS kept (organization_id, until)
    VALUES (organization, '0001-01-01 00:00:00Z')
    ON CONFLICT (organization_id) DO UPDATE SET until = date_trunc('hour', changed, 'UTC')
    WHERE kept.until > changed{unpruned}
$$;
"""
_LATE_SQLITE = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')"
_EVENTS = (("INSERT", ["NEW"]), ("DELETE", ["OLD"]), ("UPDATE", ["OLD", "NEW"]))


def _sqlite_triggers(unpruned):
    for event, changed in _EVENTS:
        name = f"usage_late_speech_{event.lower()}"
        late = " OR ".join(f"{row}.occurred_at < {_LATE_SQLITE}" for row in changed)
        lower = " ".join(
            f"UPDATE usage_speechwatermark SET until = substr({row}.occurred_at, 1, 13) || ':00:00'"
            f" WHERE organization_id = {row}.organization_id AND until > {row}.occurred_at"
            f"{unpruned.format(changed=f'{row}.occurred_at')};"
            for row in changed
        )
        yield f"DROP TRIGGER {name}"
        yield (
            f"CREATE TRIGGER {name} AFTER {event} ON usage_speechrow"
            f" WHEN {late} BEGIN {lower} END"
        )


def _make(schema_editor, unpruned) -> None:
    if schema_editor.connection.vendor == "postgresql":
        statements = [_POSTGRESQL.format(unpruned=unpruned.format(changed="changed"))]
    else:
        statements = list(_sqlite_triggers(unpruned))
    # Not through the schema editor, which would read % as a placeholder.
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _make_triggers(apps, schema_editor) -> None:
    prefix = "kept." if schema_editor.connection.vendor == "postgresql" else ""
    _make(schema_editor, f" AND ({prefix}pruned IS NULL OR {prefix}pruned <= {{changed}})")


def _make_old_triggers(apps, schema_editor) -> None:
    _make(schema_editor, "")


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0015_speech_hours'),
    ]

    operations = [
        migrations.AddField(
            model_name='speechwatermark',
            name='pruned',
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(_make_triggers, _make_old_triggers),
    ]
