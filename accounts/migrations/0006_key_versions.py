"""Versions of keys and of the standing of organizations, set by triggers.

A worker reads the rows whose version is above the last one that it saw. The triggers stand in the way
of no process of the version before: it names no new column, and still moves the stamp itself.
"""

from accounts.change_triggers import (
    create_functions,
    drop_functions,
    drop_version_triggers,
    set_new_versions,
    set_versions,
)
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


def create_triggers(apps, schema_editor):
    create_functions(schema_editor)
    set_versions(schema_editor, SUBJECT, ORGANIZATIONS, ORGANIZATION_COLUMNS)
    set_versions(schema_editor, SUBJECT, KEYS, KEY_COLUMNS)
    set_new_versions(schema_editor, SUBJECT, KEYS, ("id", "digest"))


def drop_triggers(apps, schema_editor):
    drop_version_triggers(schema_editor, ORGANIZATIONS)
    drop_version_triggers(schema_editor, KEYS)
    drop_functions(schema_editor)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_profiles'),
    ]

    operations = [
        migrations.AddField(
            model_name='changestamp',
            name='removals',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='organization',
            name='version',
            field=models.BigIntegerField(db_default=0, db_index=True, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='apikey',
            name='version',
            field=models.BigIntegerField(db_default=0, db_index=True, default=0, editable=False),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
