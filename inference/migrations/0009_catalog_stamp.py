"""Triggers that move the stamp of the catalog, so that changes by plain SQL are announced too."""

from accounts.change_triggers import leave_stamp, move_stamp
from django.db import migrations

SUBJECT = "catalog"
TABLES = (
    "inference_weightsrecord",
    "inference_modelentry",
    "inference_price",
    "inference_backend",
    "inference_deployment",
    "inference_modellimit",
)


def create_triggers(apps, schema_editor):
    move_stamp(schema_editor, SUBJECT, TABLES)


def drop_triggers(apps, schema_editor):
    leave_stamp(schema_editor, TABLES)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_key_versions'),
        ('inference', '0008_words_of_backends'),
    ]

    operations = [migrations.RunPython(create_triggers, drop_triggers)]
