"""Which batch of counts each process added last (``usage.ledger.throttle_counts``)."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("usage", "0008_admissions"),
    ]

    operations = [
        migrations.CreateModel(
            name="ThrottleWriter",
            fields=[
                ("process", models.UUIDField(primary_key=True, serialize=False)),
                ("batch", models.PositiveBigIntegerField()),
                ("written_at", models.DateTimeField()),
            ],
        ),
    ]
