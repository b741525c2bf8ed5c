"""The admin's forms as a browser would send them back."""

from __future__ import annotations

import html
import re
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import User
from inference.models import ModelEntry
from tests.support.pages.console import folded


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


MODELS = "/admin/inference/modelentry/"


def page_of(entry: ModelEntry, page: str = "change") -> str:
    return f"{MODELS}{entry.pk}/{page}/"


def text_of(answer: Any) -> str:
    """The text of the page, with white space folded."""
    plain = re.sub(
        r"<(script|style).*?</\1>|<[^>]+>", " ", folded(answer.content.decode()), flags=re.DOTALL
    )
    return re.sub(r"\s+", " ", html.unescape(plain))


def moment(name: str, at: datetime | None) -> dict[str, str]:
    return {
        f"{name}_0": at.strftime("%Y-%m-%d") if at else "",
        f"{name}_1": at.strftime("%H:%M:%S") if at else "",
    }


def entry_form(entry: ModelEntry | None, **changes: Any) -> dict[str, Any]:
    """The form that a browser sends when an entry's page is saved unchanged."""
    prices = entry.prices.count() if entry else 0
    columns: dict[str, Any] = {
        "identifier": entry.identifier if entry else "",
        "weights": entry.weights_id if entry else "",
        "context_length": 32768,
        "max_request_bytes": 1_048_576,
        "default_max_output_tokens": 2048,
        "prices-TOTAL_FORMS": prices + 1,
        "prices-INITIAL_FORMS": prices,
        f"prices-{prices}-currency": "USD",
        **moment(f"prices-{prices}-effective_from", None),
        "limits-TOTAL_FORMS": 0,
        "limits-INITIAL_FORMS": 0,
    }
    for number, price in enumerate(entry.prices.all() if entry else ()):
        columns[f"prices-{number}-id"] = price.pk
    return {**columns, **changes}
