"""The last test of each backend, in a table whose changes announce nothing to workers."""

import core.clock
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inference', '0014_withdrawn_prices'),
    ]

    operations = [
        migrations.CreateModel(
            name='BackendTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('due_at', models.DateTimeField(default=core.clock.now)),
                ('tested_at', models.DateTimeField(null=True)),
                ('result', models.CharField(blank=True, choices=[('passed', 'Passed'), ('unlisted', 'answers, but does not list a model'), ('failed', 'Failed')], max_length=16)),
                ('words', models.CharField(blank=True, max_length=500)),
                ('backend', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='last_test', to='inference.backend')),
            ],
            options={
                'verbose_name': 'test of a backend',
                'verbose_name_plural': 'tests of backends',
                'default_permissions': (),
            },
        ),
    ]
