"""Hours of speech summed once, by voice and key (``usage.queries.speech_hours``).

A trigger lowers an organization's watermark where a row is written, changed or deleted after its hour has
passed. It does nothing for a row of now. A later migration that makes the rows anew on SQLite has to make its
triggers anew too.
"""

from django.db import migrations, models

_POSTGRESQL = """
CREATE FUNCTION usage_lower_speech_watermark_to(organization uuid, changed timestamptz)
RETURNS void LANGUAGE sql AS $$
    -- Locks the watermark even where it is low enough: an hour is summed with this change or after.
    INSERT INTO usage_speechwatermark AS kept (organization_id, until)
    VALUES (organization, '0001-01-01 00:00:00Z')
    ON CONFLICT (organization_id) DO UPDATE SET until = date_trunc('hour', changed, 'UTC')
    WHERE kept.until > changed
$$;
CREATE FUNCTION usage_lower_speech_watermark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM usage_lower_speech_watermark_to(OLD.organization_id, OLD.occurred_at);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM usage_lower_speech_watermark_to(NEW.organization_id, NEW.occurred_at);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_late_speech_insert AFTER INSERT ON usage_speechrow FOR EACH ROW
    WHEN (NEW.occurred_at < now() - interval '2 hours')
    EXECUTE FUNCTION usage_lower_speech_watermark();
CREATE TRIGGER usage_late_speech_update AFTER UPDATE ON usage_speechrow FOR EACH ROW
    WHEN (least(OLD.occurred_at, NEW.occurred_at) < now() - interval '2 hours')
    EXECUTE FUNCTION usage_lower_speech_watermark();
CREATE TRIGGER usage_late_speech_delete AFTER DELETE ON usage_speechrow FOR EACH ROW
    WHEN (OLD.occurred_at < now() - interval '2 hours')
    EXECUTE FUNCTION usage_lower_speech_watermark();
"""
_POSTGRESQL_BACK = """
DROP TRIGGER usage_late_speech_insert ON usage_speechrow;
DROP TRIGGER usage_late_speech_update ON usage_speechrow;
DROP TRIGGER usage_late_speech_delete ON usage_speechrow;
DROP FUNCTION usage_lower_speech_watermark();
DROP FUNCTION usage_lower_speech_watermark_to(uuid, timestamptz);
"""
_LATE_SQLITE = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')"
_EVENTS = (("INSERT", ["NEW"]), ("DELETE", ["OLD"]), ("UPDATE", ["OLD", "NEW"]))


def _sqlite_triggers():
    for event, changed in _EVENTS:
        late = " OR ".join(f"{row}.occurred_at < {_LATE_SQLITE}" for row in changed)
        lower = " ".join(
            f"UPDATE usage_speechwatermark SET until = substr({row}.occurred_at, 1, 13) || ':00:00'"
            f" WHERE organization_id = {row}.organization_id AND until > {row}.occurred_at;"
            for row in changed
        )
        yield (
            f"CREATE TRIGGER usage_late_speech_{event.lower()} AFTER {event} ON usage_speechrow"
            f" WHEN {late} BEGIN {lower} END"
        )


def _run(schema_editor, on_postgresql, on_sqlite) -> None:
    statements = [on_postgresql] if schema_editor.connection.vendor == "postgresql" else on_sqlite
    # Not through the schema editor, which would read % as a placeholder.
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _make_triggers(apps, schema_editor) -> None:
    _run(schema_editor, _POSTGRESQL, list(_sqlite_triggers()))


def _drop_triggers(apps, schema_editor) -> None:
    dropped = [f"DROP TRIGGER usage_late_speech_{event.lower()}" for event, _ in _EVENTS]
    _run(schema_editor, _POSTGRESQL_BACK, dropped)


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0014_model_server'),
    ]

    operations = [
        migrations.CreateModel(
            name='SpeechHour',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'hour', 'voice', 'api_key_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('organization_id', models.UUIDField()),
                ('hour', models.DateTimeField()),
                ('voice', models.CharField(max_length=100)),
                ('api_key_id', models.UUIDField()),
                ('requests', models.PositiveBigIntegerField()),
                ('characters', models.PositiveBigIntegerField()),
                ('audio_ms', models.PositiveBigIntegerField()),
                ('failed', models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='SpeechWatermark',
            fields=[
                ('organization_id', models.UUIDField(primary_key=True, serialize=False)),
                ('until', models.DateTimeField()),
            ],
        ),
        migrations.RunPython(_make_triggers, _drop_triggers),
    ]
