"""Every page of console and admin refuses a form that is not from a page of its own."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from accounts.models import Membership, Organization, User

VALUES = {
    "uuid": str(uuid.UUID(int=1)),
    "int": "1",
    "path": "1",
    "identifier": "1",
    "str": "1",
    "slug": "x",
    "organization": "northwind",
}


def addresses(
    patterns: list[URLPattern | URLResolver], before: str, values: Mapping[str, str] = VALUES
) -> Iterator[str]:
    """An address for each URL pattern, with a value for each of its parameters."""
    for each in patterns:
        route = str(each.pattern)
        route = re.sub(r"\(\?P<app_label>([^)|]*)[^)]*\)", r"\1", route)
        route = re.sub(r"\(\?P<url>[^)]*\)", "anything", route)
        route = re.sub(r"<(?:(\w+):)?\w+>", lambda found: values[found[1] or "str"], route)
        address = before + route.replace("^", "").replace("$", "")
        if isinstance(each, URLResolver):
            yield from addresses(each.url_patterns, address, values)
        else:
            yield address


def pages() -> list[str]:
    found = addresses(get_resolver("svc_project.urls").url_patterns, "/")
    return sorted({each for each in found if each.startswith(("/console", "/admin"))})


def test_the_walk_finds_the_pages() -> None:
    found = pages()
    assert len(found) > 60
    assert not [each for each in found if re.search(r"[<>()?|]", each)]
    assert {
        *("/console/login", "/console/logout", "/console/keys/new"),
        *("/console/northwind/keys/new", "/console/northwind/usage"),
        *("/admin/login/", "/admin/logout/", "/admin/accounts/apikey/add/"),
        "/admin/inference/modelentry/1/publish/",
    } <= set(found)


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_no_page_takes_a_foreign_form(db: None, method: str) -> None:
    user = User.objects.create_superuser("root@northwind.example", "correct horse battery")
    organization = Organization.objects.create(name="Northwind")
    Membership.objects.create(user=user, organization=organization)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    for address in pages():
        answer = getattr(client, method)(address)
        assert answer.status_code == 403, address
        assert "Nothing was changed." in answer.content.decode(), address


def test_a_form_from_another_site_is_refused_with_a_token_too(db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/console/login")
    token = client.cookies["csrftoken"].value
    form = {"csrfmiddlewaretoken": token, "username": "a@x.example", "password": "x"}

    assert client.post("/console/login", form).status_code == 200
    for origin in ("https://evil.example", "null"):
        answer = client.post("/console/login", form, headers={"origin": origin})
        assert answer.status_code == 403
