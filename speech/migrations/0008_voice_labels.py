from accounts.change_triggers import move_stamp
from django.db import migrations, models


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the table."""
    if schema_editor.connection.vendor == "sqlite":
        move_stamp(schema_editor, "voices", ("speech_voice",))


class Migration(migrations.Migration):

    dependencies = [
        ('speech', '0007_neural_voice'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='voice',
            name='accent',
            field=models.CharField(blank=True, db_default='', default='', help_text='Such as American.', max_length=40),
        ),
        migrations.AddField(
            model_name='voice',
            name='age',
            field=models.CharField(blank=True, choices=[('young', 'young'), ('middle-aged', 'middle-aged'), ('old', 'old')], db_default='', default='', max_length=40),
        ),
        migrations.AddField(
            model_name='voice',
            name='gender',
            field=models.CharField(blank=True, choices=[('female', 'female'), ('male', 'male'), ('neutral', 'neutral')], db_default='', default='', max_length=40),
        ),
        migrations.AddField(
            model_name='voice',
            name='style',
            field=models.CharField(blank=True, db_default='', default='', help_text='In a word or two, such as warm, or newsreader.', max_length=40),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
