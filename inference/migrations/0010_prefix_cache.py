from accounts.change_triggers import move_stamp
from django.db import migrations, models


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        move_stamp(schema_editor, "catalog", ("inference_backend",))


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0009_catalog_stamp'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='backend',
            name='prefix_cache',
            field=models.CharField(choices=[('shared', 'shared: no cache_salt is sent'), ('organization', 'organization: a cache_salt for each organization'), ('none', 'none: a random cache_salt for each request')], db_default='shared', default='shared', help_text='Who shares what the server keeps of prompts. Where organizations share it, one can measure whether another sent the same beginning. For vLLM choose organization; a server that does not know cache_salt ignores or refuses it.', max_length=16),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
