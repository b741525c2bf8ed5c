"""Where a chat request was answered, how often it was sent, and how long it waited for a slot.

As in 0011, each statement changes the table's description only. A row of the release before has nulls.
"""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0013_outcomes_and_times'),
    ]

    operations = [
        migrations.AddField(
            model_name='usagerow',
            name='model_server',
            field=models.CharField(max_length=80, null=True),
        ),
        migrations.AddField(
            model_name='usagerow',
            name='attempts',
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='usagerow',
            name='queue_ms',
            field=models.IntegerField(null=True),
        ),
    ]
