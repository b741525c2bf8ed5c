"""The page of a model says who serves it, who calls it, and what it lacks to be published."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.clock import now
from inference.models import Backend, ModelEntry
from tests.support.builders import catalog_rows, traffic
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from tests.support.pages.admin_forms import page_of as address_of
from tests.support.pages.console import page_at

pytestmark = pytest.mark.django_db


def page_of(client: Client, entry: ModelEntry) -> str:
    return " ".join(page_at(client, address_of(entry)).split())


def test_a_draft_names_everything_that_it_lacks_at_once(operator: Client) -> None:
    entry = catalog_rows.draft("acme/bare")
    page = page_of(operator, entry)

    prices = f"{address_of(entry)}#prices-group"
    assert f'has no price in force. Add one first. <a href="{prices}">Add a price</a>' in page
    assert "No enabled backend serves" in page
    assert '<a href="/admin/inference/backend/">Choose a backend</a>' in page
    assert 'id="prices-group"' in page


def test_a_draft_that_lacks_nothing_says_so(operator: Client) -> None:
    assert "Nothing is missing." in page_of(operator, catalog_rows.ready("acme/ready"))


def test_the_backends_of_a_model_are_linked_with_their_state(operator: Client) -> None:
    entry = catalog_rows.published("acme/served")
    backend = Backend.objects.get(deployments__weights=entry.weights)

    link = f'<a href="/admin/inference/backend/{backend.pk}/change/">{backend.name}</a>'
    assert f"{link} as demo-on-backend: no worker uses it" in page_of(operator, entry)

    Backend.objects.update(enabled=False)

    assert f"{link} as demo-on-backend: the backend is switched off" in page_of(operator, entry)


@pytest.mark.parametrize("sees", [False, True])
def test_backends_are_shown_only_to_who_may_view_them(sees: bool) -> None:
    entry = catalog_rows.published("acme/served")
    backend = Backend.objects.get(deployments__weights=entry.weights)
    further = ("inference.view_backend",) if sees else ()
    client = logged_in(operator_with("inference.view_modelentry", *further))

    page = page_of(client, entry)

    assert (backend.name in page) is sees
    assert ("demo-on-backend" in page) is sees
    assert ("no worker uses it" in page) is sees
    assert ("Served and called" in page) is sees


def test_the_callers_of_a_week_are_listed_dearest_first(operator: Client) -> None:
    entry = catalog_rows.published("acme/called")
    keys = {}
    for name, tokens in (("small", 1_000), ("large", 5_000_000)):
        organization = Organization.objects.create(name=name)
        keys[name] = mint(organization, Scope.INFERENCE, f"key of {name}").api_key
        traffic.write(
            now() - timedelta(days=3),
            organization_id=str(organization.pk),
            api_key_id=str(keys[name].pk),
            model_id=str(entry.pk),
            model_identifier=entry.identifier,
            backend_reported_input_tokens=tokens,
        )
    old = now() - timedelta(days=9)
    traffic.write(old, model_id=str(entry.pk), model_identifier=entry.identifier)

    page = page_of(operator, entry)

    assert page.index("key of large") < page.index("key of small")
    assert f'<a href="/admin/accounts/apikey/{keys["large"].pk}/change/">' in page
    assert "without a key" not in page


def test_a_model_that_nobody_calls_says_so(operator: Client) -> None:
    assert "Nobody in 7 days." in page_of(operator, catalog_rows.published("acme/quiet"))


def test_callers_are_not_shown_without_the_right_to_see_the_ledger() -> None:
    client = logged_in(operator_with("inference.view_modelentry", "inference.view_backend"))

    page = page_of(client, catalog_rows.published("acme/quiet"))

    assert "served by" in page.lower()
    assert "Nobody in 7 days." not in page
    assert "called in 7 days" not in page.lower()
