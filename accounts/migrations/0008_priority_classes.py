"""Priority classes of organizations and keys.

Processes of the release before name neither column: an organization that they make is standard, and a
key has none of its own. SQLite remakes the table of organizations, which drops its triggers; those of both
tables get the new column.
"""

from accounts.change_triggers import drop_version_triggers, set_new_versions, set_versions
from django.db import migrations, models

SUBJECT = "keys"
KEYS = "accounts_apikey"
ORGANIZATIONS = "accounts_organization"
KEY_COLUMNS = (
    "organization_id",
    "scope",
    "digest",
    "requests_per_minute",
    "tokens_per_minute",
    "expires_at",
    "revoked_at",
)
ORGANIZATION_COLUMNS = (
    "plan",
    "requests_per_minute",
    "tokens_per_minute",
    "speech_requests_per_minute",
    "speech_characters_per_day",
    "captures_allowed",
    "disabled_at",
)
CHOICES = [('interactive', 'Interactive'), ('standard', 'Standard'), ('batch', 'Batch')]


def _create(schema_editor, *new):
    for table, columns in ((ORGANIZATIONS, ORGANIZATION_COLUMNS), (KEYS, KEY_COLUMNS)):
        drop_version_triggers(schema_editor, table)
        set_versions(schema_editor, SUBJECT, table, (*columns, *new))
    set_new_versions(schema_editor, SUBJECT, KEYS, ("id", "digest"))


def create_triggers(apps, schema_editor):
    _create(schema_editor, "priority")


def create_earlier_triggers(apps, schema_editor):
    _create(schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_admin_keys'),
    ]

    operations = [
        # Backwards, this is the last step, when SQLite has remade the table.
        migrations.RunPython(migrations.RunPython.noop, create_earlier_triggers),
        migrations.AddField(
            model_name='organization',
            name='priority',
            field=models.CharField(choices=CHOICES, db_default='standard', default='standard', help_text="Which chat requests get a model server's free slots first.", max_length=16, verbose_name='priority class'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='priority',
            field=models.CharField(blank=True, choices=CHOICES, help_text="Empty: the organization's.", max_length=16, null=True, verbose_name='priority class'),
        ),
        # Backwards, this is the first step: no trigger may name a column that is removed.
        migrations.RunPython(create_triggers, create_earlier_triggers),
    ]
