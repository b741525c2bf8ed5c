"""The right to give an organization its first owner; it changes no table."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_owners'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='membership',
            options={'permissions': (('appoint_owner', 'Can give an organization its first owner'),)},
        ),
    ]
