from importlib import import_module

import inference.models.catalog
from accounts.change_triggers import move_stamp
from django.db import migrations, models

PINNED = import_module("inference.migrations.0002_published_facts_stay")


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        PINNED.create_triggers(apps, schema_editor)
        move_stamp(schema_editor, "catalog", ("inference_modelentry",))


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0011_shares_and_defaults'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='modelentry',
            name='keep_alive_seconds',
            field=models.FloatField(blank=True, help_text='A stream that is silent for so long is sent a comment, so that no proxy cuts it. The first one begins the response: a failure after it has no status. Empty: none.', null=True, validators=[inference.models.catalog.check_silence]),
        ),
        migrations.AddConstraint(
            model_name='modelentry',
            constraint=models.CheckConstraint(condition=models.Q(('keep_alive_seconds__isnull', True), ('keep_alive_seconds__range', (1, 3600)), _connector='OR'), name='entry_silence_bounded', violation_error_message='Give 1 to 3600 seconds.'),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
