"""Login and logout of the console, and the organization that it shows."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from accounts.models import Organization, User
from core import clock
from tests.support.pages.console import PASSWORD

PAGES = [
    *("/console/", "/console/playground", "/console/models", "/console/usage", "/console/requests"),
    *("/console/keys", "/console/keys/new", "/console/password", "/console/profile"),
]
CREDENTIALS = {"username": "Ada@Northwind.example", "password": PASSWORD}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_leads_through_the_login_and_back(client: Client, person: User, page: str) -> None:
    asked = client.get(f"{page}?model=acme/demo-8b")
    assert asked.status_code == 302
    assert asked["location"].startswith("/console/login?next=")

    answer = client.post(asked["location"], {**CREDENTIALS, "next": f"{page}?model=acme/demo-8b"})

    assert answer.status_code == 302
    assert answer["location"] == f"{page}?model=acme/demo-8b"


@pytest.mark.parametrize("door", ["/console/login", "/admin/login/"])
def test_after_a_wrong_password_the_cursor_is_in_the_password(
    client: Client, person: User, door: str
) -> None:
    empty = client.get(door).content.decode()
    again = client.post(door, {**CREDENTIALS, "password": "wrong"}).content.decode()

    assert [re.findall(r"<input[^>]*autofocus[^>]*>", page) for page in (empty, again)] == [
        [field_of(empty, "username")],
        [field_of(again, "password")],
    ]
    assert 'value="Ada@Northwind.example"' in again


def field_of(page: str, name: str) -> str:
    found = re.search(rf'<input[^>]*name="{name}"[^>]*>', page)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("address", ["/", "/console"])
def test_the_root_leads_to_the_console(console: Client, address: str) -> None:
    answer = console.get(address)

    assert answer.status_code == 302
    assert answer["location"] == "/console/"
    assert console.get("/console/").status_code == 200


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil"]
)
def test_the_login_never_leads_to_another_host(
    client: Client, person: User, elsewhere: str
) -> None:
    answer = client.post("/console/login", {**CREDENTIALS, "next": elsewhere})

    assert answer["location"] == "/console/"


def test_logging_out_takes_a_post(console: Client) -> None:
    assert console.get("/console/logout").status_code == 405
    assert console.get("/console/usage").status_code == 200

    answer = console.post("/console/logout")

    assert answer["location"] == "/console/login"
    assert console.get("/console/usage").status_code == 302


def test_a_form_without_its_token_is_refused_with_a_page(person: User) -> None:
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(person)

    answer = careful.post("/console/keys/new", {"scope": "inference", "label": "forged"})

    assert answer.status_code == 403
    assert "Nothing was changed." in answer.content.decode()


@pytest.mark.parametrize("page", [*PAGES, "/console/nowhere", "/console/keys/x/y"])
def test_every_page_is_private_and_runs_only_own_files(console: Client, page: str) -> None:
    answer = console.get(page)

    policy = answer["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer["cache-control"] == "no-store"
    assert "Cookie" in answer["vary"]
    markup = answer.content.decode()
    assert not re.search(r"\sstyle=|<style|\son\w+=|<script(?! src=)", markup)


def test_leaving_an_organization_ends_its_pages(
    console: Client, person: User, organization: Organization
) -> None:
    person.memberships.all().delete()

    answer = console.get("/console/usage")

    assert answer.status_code == 403
    assert "You belong to no organization" in answer.content.decode()
    assert organization.name not in answer.content.decode()


def test_a_disabled_organization_is_not_shown(console: Client, organization: Organization) -> None:
    organization.disabled_at = clock.now() - timedelta(seconds=1)
    organization.save()

    assert console.get("/console/usage").status_code == 403
