from accounts.change_triggers import move_stamp
from django.db import migrations, models


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        move_stamp(schema_editor, "voices", ("speech_speechbackend",))


class Migration(migrations.Migration):

    dependencies = [
        ('speech', '0010_servers_of_voices'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='speechbackend',
            name='word_times',
            field=models.CharField(choices=[('none', 'it gives none'), ('header', 'in X-Word-Timestamps, asked for by word_timestamps (vLLM-Omni)'), ('captions', 'by /dev/captioned_speech beside /v1 (Kokoro-FastAPI)')], db_default='none', default='none', help_text='How it says when each word is spoken.', max_length=8),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
