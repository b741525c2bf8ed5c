"""The list of keys has their cost; a key's page has its use, limits and expiry."""

from __future__ import annotations

import uuid
from datetime import timedelta
from decimal import Decimal

from django.test import Client

from accounts.keys import keys
from accounts.keys.keys import NewKey, mint
from accounts.models import ApiKey, Organization, Scope
from core.clock import now
from tests.support.builders.receipts import speech_receipt
from tests.support.pages.console import Insert, ago, page_at, text_of, words
from usage.ledger import rows

PRICED = {
    "input_price_per_mtok": Decimal("1.00000000"),
    "output_price_per_mtok": Decimal("2.00000000"),
    "price_currency": "USD",
    "backend_reported_input_tokens": 1_000_000,
    "backend_reported_output_tokens": 250_000,
}
COST = "1.50 USD"


def of(api_key: ApiKey) -> str:
    return f"/console/keys/{api_key.pk}"


def speak(organization: Organization, key: NewKey, characters: int) -> None:
    facts = {"organization_id": str(organization.pk), "api_key_id": str(key.api_key.pk)}
    rows.insert([speech_receipt(**facts, characters=characters, voice="ava")], now())


def test_the_list_has_the_cost_of_each_key(
    console: Client, insert: Insert, organization: Organization, key: NewKey
) -> None:
    spoken = mint(organization, Scope.SPEECH, "hotline")
    unused = mint(organization, Scope.INFERENCE, "spare")
    insert(ago(hours=1), api_key_id=str(key.api_key.pk), **PRICED)
    insert(ago(days=40), api_key_id=str(unused.api_key.pk), **PRICED)
    speak(organization, spoken, 1234)

    lines = [words(each) for each in page_at(console, "/console/keys").split("<tr>")[2:]]

    (checkout,) = (each for each in lines if each.startswith("checkout"))
    (hotline,) = (each for each in lines if each.startswith("hotline"))
    (spare,) = (each for each in lines if each.startswith("spare"))
    assert COST in checkout
    assert "1,234 characters" in hotline
    assert "USD" not in spare


def test_the_page_of_a_key_has_its_use_by_model(
    console: Client, insert: Insert, organization: Organization, key: NewKey
) -> None:
    own = str(key.api_key.pk)
    insert(ago(hours=1), api_key_id=own, model_identifier="acme/dear", **PRICED)
    insert(ago(hours=2), api_key_id=own, model_identifier="acme/cheap", outcome="backend_error")
    insert(ago(hours=1), api_key_id=str(uuid.uuid4()), model_identifier="acme/other", **PRICED)

    page = page_at(console, of(key.api_key))

    use = text_of(page, "use")
    assert use.index("acme/dear 1 1.25 M 1.50") < use.index("acme/cheap 1")
    assert "acme/other" not in use
    assert "1 of 2 (50.0 %)" in use
    assert f"api_key_id={own}&amp;outcome=failed" in page


def test_the_page_of_a_key_has_its_limits_and_its_expiry(
    console: Client, insert: Insert, key: NewKey
) -> None:
    ApiKey.objects.filter(pk=key.api_key.pk).update(
        requests_per_minute=8, expires_at=now() + timedelta(days=3)
    )
    insert(ago(hours=1), api_key_id=str(key.api_key.pk))

    page = page_at(console, of(key.api_key))

    assert "1 of 8 requests a minute" in text_of(page, "limits")
    assert f"Expires {now() + timedelta(days=3):%-d %b %Y}" in text_of(page, "facts")
    assert "/rotate" not in page.partition('id="facts"')[0]
    assert "/revoke" in page


def test_a_key_without_limits_or_use_says_so(console: Client, key: NewKey) -> None:
    page = page_at(console, of(key.api_key))

    assert "None of its own" in text_of(page, "limits")
    assert "It was not used" in text_of(page, "use")
    assert "Expires never" in text_of(page, "facts")


def test_the_page_of_a_speech_key_has_its_voices(
    console: Client, organization: Organization
) -> None:
    spoken = mint(organization, Scope.SPEECH, "hotline")
    speak(organization, spoken, 77)
    speak(organization, mint(organization, Scope.SPEECH, "other"), 500)

    use = text_of(page_at(console, of(spoken.api_key)), "use")

    assert "77 characters" in use
    assert "ava 1 77" in use
    assert "577" not in use


def test_the_page_of_a_revoked_key_stays(console: Client, key: NewKey) -> None:
    keys.revoke(key.api_key)

    page = page_at(console, of(key.api_key))

    assert "revoked" in text_of(page, "facts")
    assert f"{of(key.api_key)}/revoke" not in page


def test_keys_of_others_are_not_found(console: Client, stranger: Organization) -> None:
    foreign = mint(stranger, Scope.INFERENCE, "theirs")

    assert console.get(of(foreign.api_key)).status_code == 404
    assert console.get(f"/console/keys/{uuid.uuid4()}").status_code == 404
