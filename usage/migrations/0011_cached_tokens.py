"""Prompt tokens that a model server had cached, beside the contract's columns.

Each statement changes the table's description only: no row is read or written, and on SQLite no table is
made anew, which would lose its triggers (0007). A row of the release before has null, a sum of it zero.
"""

from django.db import migrations, models

_SUMS = ("cached_input_tokens", "cache_reported_input_tokens")
_TABLES = ("usage_usagerollup", "usage_usageday", "usage_prunedsum")


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0010_rows_that_settled_later'),
    ]

    operations = [
        migrations.AddField(
            model_name='usagerow',
            name='cached_input_tokens',
            field=models.IntegerField(null=True),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'ALTER TABLE {table} ADD COLUMN {name} bigint DEFAULT 0 NOT NULL',
                    f'ALTER TABLE {table} DROP COLUMN {name}',
                )
                for table in _TABLES
                for name in _SUMS
            ],
            state_operations=[
                migrations.AddField(
                    model_name=model,
                    name=name,
                    field=models.BigIntegerField(db_default=0),
                )
                for model in ('usagerollup', 'usageday', 'prunedsum')
                for name in _SUMS
            ],
        ),
    ]
