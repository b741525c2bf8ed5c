from accounts.change_triggers import move_stamp
from django.db import migrations, models


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        move_stamp(schema_editor, "voices", ("speech_voice",))


class Migration(migrations.Migration):

    dependencies = [
        ('speech', '0011_word_times_of_servers'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='voice',
            name='mixed_into_clones',
            field=models.BooleanField(db_default=False, default=False, help_text='Clones are mixed of the neural voices that are marked so, and spoken by the neural engine where it can; with none marked, by espeak-ng alone.'),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
