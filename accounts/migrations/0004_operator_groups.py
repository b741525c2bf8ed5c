"""Ready-made groups of operators, made once: what operators change of them afterwards stays.

Django makes permissions when all migrations have run, and this needs them before. So it makes those
that are missing, with the names that Django gives; of the models it needs their names only.
"""

from django.db import migrations

MODELS = {
    "accounts.auditentry": "audit entry",
    "accounts.apikey": "API key",
    "accounts.membership": "membership",
    "accounts.organization": "organization",
    "accounts.user": "user",
    "inference.backend": "backend",
    "inference.capturereading": "capture reading",
    "inference.deployment": "deployment",
    "inference.modelentry": "model",
    "inference.modellimit": "model limit",
    "inference.price": "price",
    "inference.weightsrecord": "weights record",
    "speech.cloneupload": "upstream copy of a clone",
    "speech.speechbackend": "speech backend",
    "speech.voice": "voice",
    "speech.voiceclone": "voice clone",
    "usage.speechday": "speech day",
    "usage.speechrow": "speech row",
    "usage.usagerow": "usage row",
}

WRITE = ("view", "add", "change", "delete")
GROUPS = {
    "viewer": {model: ("view",) for model in MODELS},
    "catalog editor": {
        "accounts.organization": ("view",),
        "inference.backend": WRITE,
        "inference.deployment": WRITE,
        "inference.modelentry": WRITE,
        "inference.modellimit": WRITE,
        "inference.price": ("view", "add"),
        "inference.weightsrecord": ("view", "add", "delete"),
        "speech.speechbackend": WRITE,
        "speech.voice": WRITE,
    },
    "key manager": {
        "accounts.apikey": ("view", "add", "change"),
        "accounts.organization": ("view",),
    },
    "support": {
        "accounts.apikey": ("view", "change"),
        "accounts.membership": ("view",),
        "accounts.organization": ("view",),
        "accounts.user": ("view",),
        "inference.modelentry": ("view",),
        "inference.modellimit": ("view",),
        "speech.voice": ("view",),
        "speech.voiceclone": ("view",),
        "usage.speechday": ("view",),
        "usage.speechrow": ("view",),
        "usage.usagerow": ("view",),
    },
}


def make_groups(apps, schema_editor):
    """Make the groups that are missing; one that has the name of another is left as it is."""
    group_model = apps.get_model("auth", "Group")
    for name, rights in GROUPS.items():
        group, made = group_model.objects.get_or_create(name=name)
        if made:
            group.permissions.set(
                [_permission(apps, model, verb) for model, verbs in rights.items() for verb in verbs]
            )


def _permission(apps, label, verb):
    app, _, model = label.partition(".")
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label=app, model=model
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=kind,
        codename=f"{verb}_{model}",
        defaults={"name": f"Can {verb} {MODELS[label]}"},
    )
    return permission


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_captures_allowed"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
