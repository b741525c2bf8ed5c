from typing import ClassVar

from django.db import migrations, models

KEY = (
    "organization_id",
    "hour",
    "api_key_id",
    "model_id",
    "model_identifier",
    "price_currency",
    "input_price_per_mtok",
    "output_price_per_mtok",
    "shard",
)


def _change_key(apps, schema_editor) -> None:
    """Django has no operation that changes a composite key."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE usage_usagerollup DROP CONSTRAINT usage_usagerollup_pkey,"
            f" ADD CONSTRAINT usage_usagerollup_pkey PRIMARY KEY ({', '.join(KEY)})"
        )
    else:
        schema_editor._remake_table(apps.get_model("usage", "UsageRollup"))


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("usage", "0005_speech_close_codes")]

    operations: ClassVar[list[migrations.operations.base.Operation]] = [
        migrations.AddField(
            model_name="usagerollup",
            name="shard",
            field=models.PositiveSmallIntegerField(db_default=0),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="usagerollup",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        *KEY, blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
            ],
        ),
        migrations.RunPython(_change_key, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="usagerollup",
            index=models.Index(
                condition=models.Q(("shard__gt", 0)), fields=["hour"], name="usage_rollup_shards"
            ),
        ),
    ]
