"""The right to read the console of any organization; it changes no table."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0008_priority_classes'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='organization',
            options={'ordering': ['name'], 'permissions': (('open_console', 'Can read the console of an organization'),)},
        ),
    ]
