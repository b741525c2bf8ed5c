"""Notes of admitted requests, and the processes that they belong to (``usage.ledger.admissions``)."""

from django.db import migrations, models


def _leave_out_pattern_index(apps, schema_editor) -> None:
    # Django makes it with the migration's end. Nobody searches by pattern, and each note would pay.
    schema_editor.deferred_sql = [
        statement
        for statement in schema_editor.deferred_sql
        if not (str(statement).startswith("CREATE INDEX") and "usage_admission" in str(statement))
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("usage", "0007_days_and_pruned_months"),
    ]

    operations = [
        migrations.CreateModel(
            name="Admission",
            fields=[
                ("request_id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("owner_id", models.UUIDField()),
                ("record", models.JSONField()),
                ("closed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="AdmissionOwner",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
                ("alive_until", models.DateTimeField()),
                ("lease_seconds", models.FloatField()),
            ],
        ),
        migrations.RunPython(_leave_out_pattern_index, migrations.RunPython.noop),
    ]
