"""Withdrawals of announced prices: a table of its own, so that prices stay append-only.

Triggers refuse changes past the ORM, as those of migration 0002 do for prices, and move the catalog's
stamp, so that every worker reads a withdrawal within a second.
"""

import core.clock
import django.db.models.deletion
from accounts.change_triggers import leave_stamp, move_stamp
from django.db import migrations, models

TABLE = "inference_pricewithdrawal"
PRICED_ENTRY_IS_PUBLISHED = """
    (SELECT entry.published_at FROM inference_price price
     JOIN inference_modelentry entry ON entry.id = price.entry_id
     WHERE price.id = OLD.price_id) IS NOT NULL
"""
# name, verb, condition, message
CHANGES = [("withdrawals_never_change", "UPDATE", "1 = 1", "a withdrawal never changes")]
DELETIONS = [
    ("withdrawals_stay", "DELETE", PRICED_ENTRY_IS_PUBLISHED, "the withdrawal of a price stays")
]


def create_triggers(apps, schema_editor):
    move_stamp(schema_editor, "catalog", [TABLE])
    if schema_editor.connection.vendor == "sqlite":
        for name, verb, condition, message in CHANGES:
            schema_editor.execute(
                f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {verb} ON {TABLE} FOR EACH ROW "
                f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END",
                params=None,
            )
        return
    for name, verb, condition, message in CHANGES + DELETIONS:
        kept = "NEW" if verb == "UPDATE" else "OLD"
        schema_editor.execute(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {condition} THEN RAISE EXCEPTION '{message}' "
            "USING ERRCODE = 'integrity_constraint_violation'; END IF; "
            f"RETURN {kept}; END $$",
            params=None,
        )
        schema_editor.execute(
            f"CREATE OR REPLACE TRIGGER {name} BEFORE {verb} ON {TABLE} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()",
            params=None,
        )


def drop_triggers(apps, schema_editor):
    leave_stamp(schema_editor, [TABLE])
    for name, *_ in CHANGES + DELETIONS:
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}", params=None)
        else:
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE", params=None)


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0013_words_of_max_concurrency'),
    ]

    operations = [
        migrations.CreateModel(
            name='PriceWithdrawal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=core.clock.now, editable=False)),
                ('price', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='withdrawal', to='inference.price')),
            ],
            options={
                'verbose_name': 'withdrawal of a price',
                'verbose_name_plural': 'withdrawals of prices',
                'default_permissions': (),
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
