"""Days summed once, and months whose rows are archived (``usage.queries.days``, ``usage.retention.prune``).

Two triggers keep what no writer may forget: a roll-up that changes late lowers its organization's
watermark, and a row of a pruned month stays out. Neither does anything for a row of now: the first
asks only for the hour, the second sits on the partition that takes what has no month of its own.
A later migration that makes one of these tables anew on SQLite has to make its triggers anew too.
"""

import core.fields
from django.db import migrations, models


_NEVER = "0001-01-01"
_WATERMARK_POSTGRESQL = f"""
CREATE FUNCTION usage_lower_watermark_to(organization uuid, changed date)
RETURNS void LANGUAGE sql AS $$
    -- Locks the watermark even where it is low enough: a day is summed with this change or after.
    INSERT INTO usage_daywatermark AS kept (organization_id, until)
    VALUES (organization, '{_NEVER}')
    ON CONFLICT (organization_id) DO UPDATE SET until = changed WHERE kept.until > changed
$$;
CREATE FUNCTION usage_lower_day_watermark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM usage_lower_watermark_to(OLD.organization_id, (OLD.hour AT TIME ZONE 'UTC')::date);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM usage_lower_watermark_to(NEW.organization_id, (NEW.hour AT TIME ZONE 'UTC')::date);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_late_insert AFTER INSERT ON usage_usagerollup FOR EACH ROW
    WHEN (NEW.hour < now() - interval '2 hours') EXECUTE FUNCTION usage_lower_day_watermark();
CREATE TRIGGER usage_late_update AFTER UPDATE ON usage_usagerollup FOR EACH ROW
    WHEN (least(OLD.hour, NEW.hour) < now() - interval '2 hours')
    EXECUTE FUNCTION usage_lower_day_watermark();
CREATE TRIGGER usage_late_delete AFTER DELETE ON usage_usagerollup FOR EACH ROW
    WHEN (OLD.hour < now() - interval '2 hours') EXECUTE FUNCTION usage_lower_day_watermark();
"""
_PRUNED_POSTGRESQL = """
CREATE FUNCTION usage_keep_out_pruned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM usage_prunedmonth
        WHERE NEW.request_id >= first_id COLLATE "C" AND NEW.request_id < end_id COLLATE "C"
    ) THEN
        RAISE WARNING 'usage row % belongs to a pruned month and is left out', NEW.request_id;
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER usage_keep_out_pruned BEFORE INSERT ON usage_usagerow_default FOR EACH ROW
    EXECUTE FUNCTION usage_keep_out_pruned();
"""
_LATE_SQLITE = "strftime('%Y-%m-%d %H:%M:%S', 'now', '-2 hours')"


def _sqlite_triggers():
    for event, changed in (("INSERT", ["NEW"]), ("DELETE", ["OLD"]), ("UPDATE", ["OLD", "NEW"])):
        late = " OR ".join(f"{row}.hour < {_LATE_SQLITE}" for row in changed)
        lower = " ".join(
            f"UPDATE usage_daywatermark SET until = substr({row}.hour, 1, 10)"
            f" WHERE organization_id = {row}.organization_id AND until > substr({row}.hour, 1, 10);"
            for row in changed
        )
        yield (
            f"CREATE TRIGGER usage_late_{event.lower()} AFTER {event} ON usage_usagerollup"
            f" WHEN {late} BEGIN {lower} END"
        )
    yield (
        "CREATE TRIGGER usage_keep_out_pruned BEFORE INSERT ON usage_usagerow"
        " WHEN EXISTS (SELECT 1 FROM usage_prunedmonth"
        " WHERE NEW.request_id >= first_id AND NEW.request_id < end_id)"
        " BEGIN SELECT RAISE(ABORT, 'a usage row of a pruned month'); END"
    )


def _make_triggers(apps, schema_editor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        statements = [_WATERMARK_POSTGRESQL, _PRUNED_POSTGRESQL]
    else:
        statements = list(_sqlite_triggers())
    # Not through the schema editor, which would read % as a placeholder.
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0006_rollup_shards'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayWatermark',
            fields=[
                ('organization_id', models.UUIDField(primary_key=True, serialize=False)),
                ('until', models.DateField()),
            ],
        ),
        migrations.CreateModel(
            name='PrunedMonth',
            fields=[
                ('first', models.DateField(primary_key=True, serialize=False)),
                ('first_id', models.CharField(max_length=36)),
                ('end_id', models.CharField(max_length=36)),
                ('rows', models.PositiveBigIntegerField()),
                ('archive', models.CharField(max_length=200)),
                ('sha256', models.CharField(max_length=64)),
                ('pruned_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='PrunedSum',
            fields=[
                ('organization_id', models.UUIDField()),
                ('api_key_id', models.UUIDField()),
                ('model_id', models.UUIDField()),
                ('model_identifier', models.CharField(max_length=200)),
                ('price_currency', models.CharField(max_length=3)),
                ('input_price_per_mtok', core.fields.PriceField()),
                ('output_price_per_mtok', core.fields.PriceField()),
                ('requests', models.PositiveBigIntegerField()),
                ('backend_reported_input_tokens', models.PositiveBigIntegerField()),
                ('backend_reported_output_tokens', models.PositiveBigIntegerField()),
                ('backend_reported_reasoning_tokens', models.PositiveBigIntegerField()),
                ('generated_output_tokens', models.PositiveBigIntegerField()),
                ('delivered_output_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_input_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_output_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_requests', models.PositiveBigIntegerField()),
                ('pk', models.CompositePrimaryKey('organization_id', 'hour', 'api_key_id', 'model_id', 'model_identifier', 'price_currency', 'input_price_per_mtok', 'output_price_per_mtok', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='UsageDay',
            fields=[
                ('organization_id', models.UUIDField()),
                ('api_key_id', models.UUIDField()),
                ('model_id', models.UUIDField()),
                ('model_identifier', models.CharField(max_length=200)),
                ('price_currency', models.CharField(max_length=3)),
                ('input_price_per_mtok', core.fields.PriceField()),
                ('output_price_per_mtok', core.fields.PriceField()),
                ('requests', models.PositiveBigIntegerField()),
                ('backend_reported_input_tokens', models.PositiveBigIntegerField()),
                ('backend_reported_output_tokens', models.PositiveBigIntegerField()),
                ('backend_reported_reasoning_tokens', models.PositiveBigIntegerField()),
                ('generated_output_tokens', models.PositiveBigIntegerField()),
                ('delivered_output_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_input_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_output_tokens', models.PositiveBigIntegerField()),
                ('svc_counted_requests', models.PositiveBigIntegerField()),
                ('pk', models.CompositePrimaryKey('organization_id', 'day', 'api_key_id', 'model_id', 'model_identifier', 'price_currency', 'input_price_per_mtok', 'output_price_per_mtok', blank=True, editable=False, primary_key=True, serialize=False)),
                ('day', models.DateField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.SeparateDatabaseAndState(
            # An operator of a large ledger makes the index ahead, without stopping writers
            # (docs/operate/postgresql.md).
            database_operations=[
                migrations.RunSQL(
                    "CREATE INDEX IF NOT EXISTS usage_by_key"
                    " ON usage_usagerow (api_key_id, occurred_at)",
                    "DROP INDEX usage_by_key",
                )
            ],
            state_operations=[
                migrations.AddIndex(
                    model_name='usagerow',
                    index=models.Index(fields=['api_key_id', 'occurred_at'], name='usage_by_key'),
                )
            ],
        ),
        migrations.RunPython(_make_triggers, migrations.RunPython.noop),
    ]
