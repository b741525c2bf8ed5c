"""The page about a customer: each number leads to its rows, each part is for those who may see it."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from django.test import Client

from accounts.audit import trail
from accounts.keys.keys import mint
from accounts.models import ApiKey, Membership, Organization, Scope, User
from core.clock import hour_of, now
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from tests.support.pages.console import text_of, words
from tests.support.pages.ledger_lists import FAILED, listed, write
from usage.queries import latest
from usage.refusals.counts import ErrorKey, add_refused

pytestmark = pytest.mark.django_db


def test_the_page_of_a_customer_has_its_failures_by_code_server_model_and_key(
    operator: Client,
) -> None:
    customer = Organization.objects.create(name="Globex", requests_per_minute=100)
    write(customer, 5, days_ago=0.01)
    write(customer, 3, **FAILED)
    write(customer, 2, days_ago=3, **(FAILED | {"error_code": "internal_error"}))
    write(customer, 1, days_ago=40, **FAILED)
    write(Organization.objects.create(name="other"), 7, **FAILED)

    answer = operator.get(f"/admin/customer/{customer.pk}/")

    page = answer.content.decode()
    words = text_of(page, "svc-failures")
    assert answer.context["failing"].count == 5
    assert "Failed in 30 days: 5" in words
    causes = [
        (cause.failure.error_code, cause.failure.model_server, cause.key, cause.failure.count)
        for cause in answer.context["failing"].causes
    ]
    assert causes == [
        ("backend_timeout", "gpu-1", "without a key", 3),
        ("internal_error", "gpu-1", "without a key", 2),
    ]
    for cause in answer.context["failing"].causes:
        assert listed(operator, cause.rows) == cause.failure.count
    assert listed(operator, answer.context["failing"].rows) == 5
    days = [day for day in answer.context["spend"].days if day.requests]
    assert sum(day.requests for day in days) == 10
    assert sum(day.failed for day in days) == 5
    for day in days:
        assert listed(operator, day.rows) == day.requests
        assert listed(operator, day.failed_rows) == day.failed
    assert "Requests a minute" in page
    assert (
        f'href="/admin/customer/{customer.pk}/"'
        in operator.get(f"/admin/accounts/organization/{customer.pk}/change/").content.decode()
    )


def test_failures_are_counted_beyond_the_rows_that_are_searched_for_causes(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest, "MOST_SEARCHED", 3)
    customer = Organization.objects.create(name="Globex")
    write(customer, 4, days_ago=3, **FAILED)
    write(customer, 2, days_ago=2, **FAILED)

    answer = operator.get(f"/admin/customer/{customer.pk}/")

    failing = answer.context["failing"]
    assert failing.count == listed(operator, failing.rows) == 6
    assert "of the newest 50,000 requests, since" in words(answer.content.decode())
    assert sum(day.failed for day in answer.context["spend"].days) == 6


def test_the_page_of_a_customer_has_what_was_refused_over_all_keys(operator: Client) -> None:
    customer = Organization.objects.create(name="Globex")
    other = Organization.objects.create(name="other")
    hour = hour_of(now())
    for owner, model, error in (
        *((customer, "", "model_not_found"), (customer, "", "model_not_found")),
        *((customer, "acme/demo-8b", "invalid-field"), (other, "", "invalid-field")),
    ):
        key = ErrorKey(str(owner.pk), hour, str(uuid.uuid4()), model, error)
        add_refused(Counter({key: 2}))

    page = operator.get(f"/admin/customer/{customer.pk}/").content.decode()

    found = words(page)
    assert "model_not_found 4" in found
    assert "invalid-field, acme/demo-8b 2" in found
    assert found.count("invalid-field") == 1


def test_keys_members_and_changes_are_there_and_the_organization_leads_to_the_page(
    operator: Client,
) -> None:
    customer = Organization.objects.create(name="Globex")
    key = mint(customer, Scope.INFERENCE, "nightly").api_key
    member = User.objects.create_user("ann@globex.example", "x")
    Membership.objects.create(user=member, organization=customer)
    write(customer, 4, api_key_id=str(key.pk))

    page = operator.get(f"/admin/customer/{customer.pk}/").content.decode()

    shown = words(page)
    assert f"{key.prefix}… nightly Inference Active never 4" in shown
    assert f'href="/admin/key/{key.pk}/"' in page
    assert "ann@globex.example , member, never logged in" in shown
    assert "API key" in shown
    assert "minted" in shown
    for address in ("", "change/"):
        leading = operator.get(f"/admin/accounts/organization/{customer.pk}/{address}", follow=True)
        assert f"/admin/customer/{customer.pk}/" in leading.content.decode()


PARTS = {
    "usage.view_usagerow": ["svc-spend", "svc-failures", "svc-limits", "svc-refused"],
    "accounts.view_apikey": ["svc-keys"],
    "accounts.view_membership": ["svc-members"],
    "accounts.view_auditentry": ["svc-entries"],
}


@pytest.mark.parametrize("right", PARTS)
def test_each_part_is_for_those_who_may_see_its_table(right: str) -> None:
    customer = Organization.objects.create(name="Globex")
    trail.record("looked at", customer, {})
    address = f"/admin/customer/{customer.pk}/"
    assert logged_in(operator_with(right, email="a@svc.example")).get(address).status_code == 403

    page = logged_in(operator_with(right, "accounts.view_organization")).get(address)

    shown = page.content.decode()
    assert page.status_code == 200
    for part, names in PARTS.items():
        for name in names:
            assert (f'id="{name}"' in shown) is (part == right), name


def test_keys_are_not_named_to_who_may_not_see_keys() -> None:
    customer = Organization.objects.create(name="Globex")
    key = mint(customer, Scope.INFERENCE, "checkout").api_key
    ApiKey.objects.update(requests_per_minute=5)
    write(customer, 2, **(FAILED | {"api_key_id": str(key.pk)}))
    rights = ["accounts.view_organization", "usage.view_usagerow", "accounts.view_auditentry"]
    address = f"/admin/customer/{customer.pk}/"

    blind = logged_in(operator_with(*rights)).get(address).content.decode()
    seeing = operator_with(*rights, "accounts.view_apikey", email="2@svc.example")
    seen = logged_in(seeing).get(address).content.decode()

    assert "Failed in 30 days: 2" in text_of(blind, "svc-failures")
    assert " of 5" in words(blind)
    for name in (key.prefix, "checkout"):
        assert name not in blind
        assert name in seen
