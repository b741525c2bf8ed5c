from importlib import import_module

import django.core.validators
from accounts.change_triggers import move_stamp
from django.db import migrations, models

PINNED = import_module("inference.migrations.0002_published_facts_stay")


def create_triggers(apps, schema_editor):
    """Create the triggers again that went when SQLite remade the tables."""
    if schema_editor.connection.vendor == "sqlite":
        PINNED.create_triggers(apps, schema_editor)
        move_stamp(schema_editor, "catalog", ("inference_modelentry", "inference_deployment"))


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0010_prefix_cache'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, create_triggers),
        migrations.AddField(
            model_name='deployment',
            name='draining',
            field=models.BooleanField(db_default=False, default=False, help_text='It gets no new requests; those that run there end.'),
        ),
        migrations.AddField(
            model_name='deployment',
            name='weight',
            field=models.PositiveIntegerField(db_default=100, default=100, help_text='Its share of new conversations, beside the other backends of these weights. Where all are equal, each gets what costs least there.', validators=[django.core.validators.MinValueValidator(1, 'A weight is at least 1. Drain the deployment to send it nothing new.')]),
        ),
        migrations.AddField(
            model_name='modelentry',
            name='defaults',
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text='For what a caller leaves out, such as {"temperature": 0.6, "top_p": 0.95}.'),
        ),
        migrations.AddField(
            model_name='modelentry',
            name='extra_fields',
            field=models.JSONField(blank=True, db_default={}, default=dict, help_text='Added to the body of each request, over the backend\'s, such as {"chat_template_kwargs": {"enable_thinking": false}}.'),
        ),
        migrations.AddConstraint(
            model_name='deployment',
            constraint=models.CheckConstraint(condition=models.Q(('weight__gte', 1)), name='deployment_weight_positive', violation_error_message='A weight is at least 1. Drain the deployment to send it nothing new.'),
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
