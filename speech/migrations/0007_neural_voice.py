from accounts.change_triggers import move_stamp
from django.db import migrations, models


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        move_stamp(schema_editor, "voices", ("speech_voice",))


class Migration(migrations.Migration):

    dependencies = [
        ('speech', '0006_voices_stamp'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='voice',
            name='neural_voice',
            field=models.CharField(blank=True, db_default='', help_text="Kokoro's voice, such as af_heart, that speaks it instead of espeak-ng's where the neural engine is installed, fast enough for live streams and free. Empty: always as above.", max_length=120),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
