"""The organization in the addresses of the console."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import get_resolver

from accounts.console.addresses import FIRST_PARTS, names_of
from accounts.models import Membership, Organization, User
from svc_project.urls import CONSOLE
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.console import words


@pytest.fixture
def second(person: User) -> Organization:
    """Another organization of the person."""
    organization = Organization.objects.create(name="Contoso & Söhne")
    Membership.objects.create(user=person, organization=organization)
    return organization


@pytest.fixture
def browser(person: User) -> Client:
    """A session of the person; addresses are sent as they are."""
    return logged_in(person)


def keys_of(page: str) -> str:
    """The organization whose keys a page shows."""
    found = re.search(r"Each key belongs to (.+?) and has", words(page))
    assert found is not None
    return found[1]


def test_an_old_address_leads_to_that_of_the_organization_that_was_shown_last(
    browser: Client, second: Organization
) -> None:
    def led(address: str) -> str:
        answer = browser.get(address)
        assert answer.status_code == 302
        return answer["location"]

    assert led("/console/") == "/console/northwind/"
    assert led("/console/usage?by=key&model=a%2Fb") == "/console/northwind/usage?by=key&model=a%2Fb"
    assert led("/console/models/acme/usage") == "/console/northwind/models/acme/usage"
    assert led("/console/northwind") == "/console/northwind/"
    browser.get("/console/contoso-sohne/usage")
    assert led("/console/requests/req_1") == "/console/contoso-sohne/requests/req_1"
    assert browser.get("/console/nowhere").status_code == 404
    assert browser.get("/console/profile").status_code == 200


def test_an_address_opens_its_organization_and_every_link_stays_there(
    browser: Client, organization: Organization, second: Organization
) -> None:
    here = browser.get("/console/contoso-sohne/keys").content.decode()
    there = browser.get("/console/northwind/keys").content.decode()

    assert keys_of(here) == "Contoso & Söhne"
    assert keys_of(there) == "Northwind"
    links = set(re.findall(r'href="/console/([^/"]*)', here)) - FIRST_PARTS
    assert links == {"contoso-sohne", "northwind"}
    assert 'href="/console/northwind/"' in here, "to switch is a link"
    assert here.count('href="/console/northwind') == 1
    assert keys_of(browser.get(f"/console/{second.pk}/keys").content.decode()) == second.name


def test_a_form_changes_the_organization_of_its_address(
    browser: Client, organization: Organization, second: Organization
) -> None:
    form = browser.get("/console/northwind/keys/new").content.decode()
    (token,) = re.findall(r'name="one_time" value="([^"]*)"', form)
    browser.get("/console/contoso-sohne/keys")

    browser.post("/console/northwind/keys/new", {"scope": "read", "label": "x", "one_time": token})

    assert organization.api_keys.count() == 1
    assert second.api_keys.count() == 0


@pytest.mark.parametrize("path", ["", "usage", "usage/totals.csv", "keys/new", "requests/newer"])
def test_a_foreign_organization_is_as_one_that_does_not_exist(
    browser: Client, stranger: Organization, path: str
) -> None:
    answers = [
        browser.get(f"/console/{name}/{path}")
        for name in ("strangers-ltd", str(stranger.pk), "no-such")
    ]
    posted = browser.post("/console/strangers-ltd/keys/new", {"scope": "read", "label": "x"})

    assert posted.status_code == 404
    assert {answer.status_code for answer in answers} == {404}
    pages = {re.sub(r'value="\w+"', "", answer.content.decode()) for answer in answers}
    assert len(pages) == 1
    assert "Strangers" not in pages.pop()
    assert "organization_id" not in browser.session, "it was not shown"
    assert Client().get(f"/console/strangers-ltd/{path}")["location"].startswith("/console/login")


def test_the_api_answers_a_session_about_the_organization_that_a_download_names(
    browser: Client, second: Organization, stranger: Organization
) -> None:
    page = browser.get("/console/contoso-sohne/usage").content.decode()
    (download,) = re.findall(r'href="(/v1/usage/export[^"]*format=csv[^"]*)"', page)
    browser.get("/console/northwind/usage")

    answer = browser.get(download.replace("&amp;", "&"))

    assert 'filename="usage-contoso-sohne-' in answer["content-disposition"]
    assert browser.get(f"/v1/usage?organization={stranger.pk}").status_code == 401
    assert "organization" not in re.findall(r"<pre id=.curl.*?</pre>", page, re.DOTALL)[0]


def test_a_name_that_would_not_do_is_the_id(db: None) -> None:
    made = [Organization(name=name) for name in ("Acme", "ACME!", "Usage", "株式会社", "Wide")]

    names = [name for organization, name in names_of(made).items()]

    assert names == [*(str(each.pk) for each in made[:4]), "wide"]


def test_the_first_parts_are_those_of_the_pages() -> None:
    known = get_resolver("svc_project.urls")
    routes = [str(each.pattern) for part in CONSOLE for each in part.url_patterns]  # type: ignore[union-attr]
    people = [
        str(each.pattern)
        for part in known.url_patterns
        for each in getattr(part, "url_patterns", [])
        if str(part.pattern) == "console/" and hasattr(each, "callback")
    ]
    parts = {route.partition("/")[0] for route in (*routes, *people)}

    assert parts - {"", "<path:path>"} == FIRST_PARTS
