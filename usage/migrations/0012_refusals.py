"""Refused requests: counts by hour, and the newest of each organization. Two tables of their own.

Groups of operators that may view usage rows may view the refused ones.
"""

from django.db import migrations, models


def let_groups_view(apps, schema_editor):
    """Django makes permissions when all migrations have run, so the new one is made here, as Django names it."""
    permission_model = apps.get_model("auth", "Permission")
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="usage", model="refusal"
    )
    permission, _ = permission_model.objects.get_or_create(
        content_type=kind,
        codename="view_refusal",
        defaults={"name": "Can view refused request"},
    )
    groups = apps.get_model("auth", "Group").objects.filter(
        permissions__codename="view_usagerow", permissions__content_type__app_label="usage"
    )
    for group in groups:
        group.permissions.add(permission)


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0011_cached_tokens'),
        ('accounts', '0004_operator_groups'),
    ]

    operations = [
        migrations.CreateModel(
            name='RefusalCount',
            fields=[
                ('pk', models.CompositePrimaryKey('organization_id', 'hour', 'api_key_id', 'model_identifier', 'error', blank=True, editable=False, primary_key=True, serialize=False)),
                ('organization_id', models.UUIDField()),
                ('hour', models.DateTimeField()),
                ('api_key_id', models.UUIDField()),
                ('model_identifier', models.CharField(max_length=200)),
                ('error', models.CharField(max_length=48)),
                ('count', models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='Refusal',
            fields=[
                ('request_id', models.CharField(max_length=36, primary_key=True, serialize=False)),
                ('occurred_at', models.DateTimeField()),
                ('organization_id', models.UUIDField()),
                ('api_key_id', models.UUIDField()),
                ('route', models.CharField(max_length=16)),
                ('status', models.PositiveSmallIntegerField()),
                ('error', models.CharField(max_length=48)),
                ('param', models.CharField(max_length=100)),
                ('message', models.CharField(max_length=500)),
                ('model_identifier', models.CharField(max_length=200)),
            ],
            options={
                'verbose_name': 'refused request',
                'ordering': ['occurred_at', 'request_id'],
                'indexes': [models.Index(fields=['organization_id', 'occurred_at', 'request_id'], name='refusal_by_organization')],
            },
        ),
        migrations.RunPython(let_groups_view, migrations.RunPython.noop),
    ]
