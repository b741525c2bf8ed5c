"""No page and no endpoint fails on unprintable characters: NUL, control characters, bytes.

PostgreSQL refuses NUL in a text, so this walk says most when the suite runs on it.
"""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import get_resolver
from pytest_django.fixtures import Settings

from accounts.keys.keys import mint
from accounts.models import Membership, Organization, Scope, User
from tests.svc_project.test_csrf import VALUES, addresses

UNPRINTABLE = ("a%00b", "a_00b", "%0A", "%FF")
PARAMETERS = (
    *(
        "api_key_id",
        "bucket",
        "cursor",
        "end",
        "error",
        "format",
        "group_by",
        "limit",
        "metric",
        "model",
    ),
    *("next", "page", "request_id", "start"),
)
OF_LISTS = ("q", "p", "o", "scope", "status", "pk__exact", "_changelist_filters", "_to_field")


@pytest.fixture
def member(organization: Organization) -> Client:
    """A session of an operator who is a member of the organization, too."""
    user = User.objects.create_superuser("ops@svc.example", "correct horse battery")
    Membership.objects.create(user=user, organization=organization)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@pytest.fixture
def reader(organization: Organization) -> Client:
    return with_key(organization, Scope.READ)


def with_key(organization: Organization, scope: Scope) -> Client:
    headers = {"authorization": f"Bearer {mint(organization, scope).secret}"}
    return Client(raise_request_exception=False, headers=headers)


def with_texts(text: str, urls: str = "svc_project.urls") -> list[str]:
    """Every address with a text parameter, with ``text`` as its value."""
    values = {**dict.fromkeys(VALUES, text), "uuid": str(uuid.UUID(int=1)), "int": "1"}
    found = addresses(get_resolver(urls).url_patterns, "/", values)
    return sorted({each for each in found if text in each and not re.search(r"[<>()?|]", each)})


def failures(client: Client, asked: list[str], *methods: str) -> list[str]:
    return [
        f"{method} {address}: {status}"
        for address in asked
        for method in methods
        if (status := client.generic(method, address).status_code) >= 500
    ]


@pytest.mark.parametrize("text", UNPRINTABLE)
def test_no_path_fails(member: Client, reader: Client, text: str) -> None:
    asked = with_texts(text)
    pages = [each for each in asked if not each.startswith("/v1")]
    endpoints = [each for each in asked if each.startswith("/v1")]

    assert f"/console/requests/{text}" in pages
    assert f"/admin/inference/diagnosticcapture/{text}/change/" in pages
    assert endpoints == [f"/v1/models/{text}"]
    assert failures(member, pages, "GET", "POST") == []
    assert failures(reader, endpoints, "GET", "POST") == []


@pytest.mark.parametrize("text", UNPRINTABLE)
def test_no_path_of_the_speech_surface_fails(
    organization: Organization, text: str, settings: Settings
) -> None:
    asked = with_texts(text, "speech.api.urls")
    settings.ROOT_URLCONF = "speech.api.urls"

    assert asked == [f"/v1/{kind}/{text}" for kind in ("models", "pronunciations", "voices")]
    client = with_key(organization, Scope.SPEECH)
    assert failures(client, asked, "GET", "POST", "DELETE") == []


@pytest.mark.parametrize(
    "text",
    [UNPRINTABLE[0], *(pytest.param(each, marks=pytest.mark.long) for each in UNPRINTABLE[1:])],
)
def test_no_parameter_fails(member: Client, reader: Client, text: str) -> None:
    every = sorted(set(addresses(get_resolver("svc_project.urls").url_patterns, "/")))
    pages = [each for each in every if each.startswith("/console")]
    endpoints = [each for each in every if each.startswith("/v1")]
    lists = [each for each in every if re.fullmatch(r"/admin/\w+/\w+/", each)]
    assert len(pages) > 10
    assert len(endpoints) == 4
    assert len(lists) > 10

    def asked(places: list[str], names: tuple[str, ...]) -> list[str]:
        return [f"{each}?{name}={text}" for each in places for name in names]

    assert failures(member, asked(pages, PARAMETERS), "GET") == []
    assert failures(member, asked(lists, OF_LISTS), "GET") == []
    assert failures(reader, asked(endpoints, PARAMETERS), "GET") == []


@pytest.mark.parametrize("text", ["%00", "req_a%00b", "a%0Ab", "%C3%BC", "x" * 37])
def test_an_impossible_request_id_shows_an_error_page(
    member: Client, organization: Organization, text: str
) -> None:
    answer = member.get(f"/console/{organization.slug}/requests/{text}")

    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()
    found = member.get(f"/console/requests?request_id={text}", follow=True)
    assert found.status_code == 404
    assert "There is nothing here" in found.content.decode()


@pytest.mark.parametrize("field", ["", "id", "nothing", "a%00b"])
def test_the_field_by_which_the_admin_finds_an_object_may_be_any_text(
    member: Client, organization: Organization, field: str
) -> None:
    page = f"/admin/accounts/organization/{organization.pk}/change/?_to_field={field}"

    assert member.get(page).status_code == (400 if field in ("nothing", "a%00b") else 200)
