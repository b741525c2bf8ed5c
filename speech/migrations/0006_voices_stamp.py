"""Triggers that move the stamp of the voices, so that changes by plain SQL are announced too."""

from accounts.change_triggers import leave_stamp, move_stamp
from django.db import migrations

SUBJECT = "voices"
TABLES = ("speech_voice", "speech_speechbackend")


def create_triggers(apps, schema_editor):
    move_stamp(schema_editor, SUBJECT, TABLES)


def drop_triggers(apps, schema_editor):
    leave_stamp(schema_editor, TABLES)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_key_versions'),
        ('speech', '0005_voice_engine'),
    ]

    operations = [migrations.RunPython(create_triggers, drop_triggers)]
