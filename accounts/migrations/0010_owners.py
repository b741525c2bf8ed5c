"""Owners among members, and how long an organization keeps the content of failed requests.

Processes of the release before name neither column: whom they add is a member, and an organization that they
make keeps nothing. SQLite remakes the table of organizations, which drops its triggers; they get the new column.
"""

from importlib import import_module

from accounts.change_triggers import drop_version_triggers, set_versions
from django.db import migrations, models

BEFORE = import_module("accounts.migrations.0008_priority_classes")


def _create(schema_editor, *new):
    drop_version_triggers(schema_editor, BEFORE.ORGANIZATIONS)
    columns = (*BEFORE.ORGANIZATION_COLUMNS, "priority", *new)
    set_versions(schema_editor, BEFORE.SUBJECT, BEFORE.ORGANIZATIONS, columns)


def create_triggers(apps, schema_editor):
    _create(schema_editor, "failed_content_hours")


def create_earlier_triggers(apps, schema_editor):
    _create(schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_open_console'),
    ]

    operations = [
        # Backwards, this is the last step, when SQLite has remade the table.
        migrations.RunPython(migrations.RunPython.noop, create_earlier_triggers),
        migrations.AddField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=[('owner', 'Owner'), ('member', 'Member')], db_default='member', default='member', max_length=8),
        ),
        migrations.AddField(
            model_name='organization',
            name='failed_content_hours',
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='How long the content of failed chats is kept; its owners decide. 0: not at all.'),
        ),
        # Backwards, this is the first step: no trigger may name a column that is removed.
        migrations.RunPython(create_triggers, create_earlier_triggers),
    ]
