"""Failed logins and the audit log, with triggers that keep an entry as it was written.

On SQLite they guard against changes only: its ``flush`` deletes row by row, which a guard against
deletion would stop too, while PostgreSQL's truncates. There the model and its queryset refuse a
deletion (``accounts.models.security``). A later migration that alters the table on SQLite remakes it
and drops its triggers: end such a migration with ``RunPython`` of ``create_triggers``.
"""

import core.clock
from django.db import migrations, models


TABLE = "accounts_auditentry"
MESSAGE = "an audit entry stays as it was written"


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            f"CREATE TRIGGER IF NOT EXISTS audit_entries_stay BEFORE UPDATE ON {TABLE} "
            f"FOR EACH ROW BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END",
            params=None,
        )
        return
    schema_editor.execute(
        "CREATE OR REPLACE FUNCTION audit_entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        params=None,
    )
    schema_editor.execute(
        f"CREATE OR REPLACE TRIGGER audit_entries_stay BEFORE UPDATE OR DELETE ON {TABLE} "
        "FOR EACH ROW EXECUTE FUNCTION audit_entries_stay()",
        params=None,
    )


def drop_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER IF EXISTS audit_entries_stay", params=None)
        return
    schema_editor.execute("DROP FUNCTION IF EXISTS audit_entries_stay() CASCADE", params=None)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_organizations_users_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='FailedLogins',
            fields=[
                ('subject', models.CharField(help_text='A keyed digest: what was typed is not kept.', max_length=64, primary_key=True, serialize=False)),
                ('count', models.PositiveIntegerField(default=0)),
                ('failed_at', models.DateTimeField(db_index=True)),
                ('blocked_until', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=core.clock.now, editable=False)),
                ('actor', models.CharField(help_text='An email address, or command:<name>.', max_length=300)),
                ('source', models.CharField(choices=[('admin', 'Admin'), ('console', 'Console'), ('command', 'Command'), ('api', 'API'), ('system', 'The gateway itself')], max_length=16)),
                ('address', models.GenericIPAddressField(help_text='Of the client, over HTTP.', null=True)),
                ('verb', models.CharField(max_length=40)),
                ('kind', models.CharField(help_text='What sort of thing was changed.', max_length=60)),
                ('subject_id', models.CharField(max_length=64)),
                ('subject', models.CharField(max_length=400)),
                ('organization_id', models.UUIDField(db_index=True, null=True)),
                ('changes', models.JSONField(default=dict)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['kind', 'subject_id'], name='audit_entry_subject')],
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
