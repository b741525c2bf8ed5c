"""The search on the admin's home leads to everything, and a whole key is in no address."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.keys import admin_keys, keys
from accounts.keys.keys import NewKey, mint
from accounts.models import ApiKey, AuditEntry, Organization, Scope, User
from core.clock import now
from core.ids import request_id
from tests.support.builders import catalog_rows
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from tests.support.pages.console import words
from tests.support.pages.ledger_lists import write
from usage.ledger import rows
from usage.models import Refusal

pytestmark = pytest.mark.django_db

FIND = "/admin/find/"


@pytest.fixture
def customer() -> Organization:
    return Organization.objects.create(name="Globex")


@pytest.fixture
def key(customer: Organization) -> NewKey:
    return mint(customer, Scope.INFERENCE, "nightly")


def test_each_thing_is_found_by_what_a_person_has_of_it(
    operator: Client, customer: Organization, key: NewKey
) -> None:
    user = User.objects.create_user("ann@initech.example", "x")
    entry = catalog_rows.published("acme/found")
    backend = catalog_rows.backend("gpu-7", base_url="http://10.0.0.7:9000/v1")
    chat, spoken = receipt(), speech_receipt()
    rows.insert([chat, spoken], now())
    refused = Refusal.objects.create(
        request_id=request_id(),
        occurred_at=now(),
        organization_id=customer.pk,
        api_key_id=key.api_key.pk,
        route="chat",
        status=404,
        error="model_not_found",
    ).request_id
    machine = admin_keys.mint("terraform")
    card = f"/admin/key/{key.api_key.pk}/"
    places = {
        chat.request_id: f"/admin/usage/usagerow/{chat.request_id}/change/",
        spoken.request_id: f"/admin/usage/speechrow/{spoken.request_id}/change/",
        refused: f"/admin/usage/refusal/{refused}/change/",
        "globex": f"/admin/customer/{customer.pk}/",
        str(customer.pk): f"/admin/customer/{customer.pk}/",
        "ann@initech": f"/admin/accounts/user/{user.pk}/change/",
        "acme/found": f"/admin/inference/modelentry/{entry.pk}/change/",
        "10.0.0.7": f"/admin/inference/backend/{backend.pk}/change/",
        key.api_key.prefix: card,
        f"{key.api_key.prefix}…": card,
        "nightly": card,
        f"  {key.secret}\n": card,
        key.secret[:25]: card,
        machine.secret: f"/admin/accounts/adminkey/{machine.admin_key.pk}/change/",
    }
    assert 'action="/admin/find/"' in operator.get("/admin/").content.decode()
    for typed, place in places.items():
        answer: Any = operator.post(FIND, {"find": typed})
        assert (answer.status_code, answer.url) == (302, place), typed
        assert operator.get(place).status_code == 200


def test_several_are_listed_and_none_is_said(operator: Client, customer: Organization) -> None:
    Organization.objects.create(name="Globex Europe")

    several = words(operator.post(FIND, {"find": "globex"}).content.decode())
    assert "organization Globex organization Globex Europe" in several
    for nothing in ("nobody", "req_0", str(uuid.uuid4()), "a\0b", ""):
        assert "Nothing is found" in words(operator.post(FIND, {"find": nothing}).content.decode())
    assert operator.get(FIND).status_code == 302


def test_a_secret_of_another_place_is_no_key_of_this_gateway_and_is_not_repeated(
    operator: Client, key: NewKey
) -> None:
    ApiKey.objects.all().delete()

    page = operator.post(FIND, {"find": key.secret}).content.decode()

    assert "No key of this gateway has this secret." in words(page)
    assert key.secret not in page
    assert key.secret[len(key.api_key.prefix) :] not in page


def test_a_leaked_key_is_revoked_in_two_clicks_and_its_use_by_hour_is_shown(
    operator: Client, customer: Organization, key: NewKey
) -> None:
    write(customer, 3, api_key_id=str(key.api_key.pk))
    write(customer, 2, days_ago=6, api_key_id=str(key.api_key.pk))
    write(customer, 1, days_ago=8, api_key_id=str(key.api_key.pk))
    write(customer, 9)

    card = operator.post(FIND, {"find": key.secret}, follow=True)
    page = card.content.decode()
    assert "Requests by hour, 7 days: 5" in words(page)
    hour = (now() - timedelta(days=0.1)).strftime("%-d %b %Y, %H:00 UTC 3")
    assert hour in words(page)
    assert key.secret not in page

    done = operator.post(card.redirect_chain[-1][0], follow=True)

    assert "is revoked" in words(done.content.decode())
    assert "Revoke now" not in words(done.content.decode())
    assert keys.status(ApiKey.objects.get()) is keys.KeyStatus.REVOKED
    entry = AuditEntry.objects.get(kind="API key", verb="revoked")
    assert (entry.actor, entry.source) == ("operator@svc.example", "admin")
    assert key.secret not in str(list(AuditEntry.objects.values_list("changes", "subject")))


def test_an_operator_finds_only_what_he_may_see(customer: Organization, key: NewKey) -> None:
    sees_keys = logged_in(operator_with("accounts.view_apikey"))
    assert "Nothing is found" in words(sees_keys.post(FIND, {"find": "Globex"}).content.decode())
    card: Any = sees_keys.post(FIND, {"find": key.secret})
    page = sees_keys.get(card.url).content.decode()
    assert "Revoke now" not in page
    assert "Requests by hour" not in page
    assert sees_keys.post(card.url).status_code == 403
    sees_models = logged_in(operator_with("inference.view_modelentry", email="m@svc.example"))
    assert "No key of this gateway" in words(
        sees_models.post(FIND, {"find": key.secret}).content.decode()
    )
    assert sees_models.get(card.url).status_code == 403
