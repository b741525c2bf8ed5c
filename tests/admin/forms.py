"""The admin's forms as a browser would send them back."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import User


def operator(*permissions: str, email: str = "operator@northwind.example") -> User:
    """An operator with ``permissions`` (``inference.change_backend``) and no others."""
    user = User.objects.create_user(email, "correct horse battery")
    user.is_staff = True
    user.save()
    for each in permissions:
        app, _, codename = each.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return user


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def filled_in(client: Client, address: str) -> dict[str, Any]:
    """What the form at ``address`` holds, with its inline forms left out."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.status_code
    context = answer.context
    form = context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    content = {name: value for name, value in values.items() if value not in (None, False)}
    for inline in context["inline_admin_formsets"]:
        for figure in ("TOTAL_FORMS", "INITIAL_FORMS"):
            content[f"{inline.formset.prefix}-{figure}"] = 0
    return content
