"""The pages of models: prices now, announced and past, status, own use."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client

from accounts.keys.keys import NewKey
from accounts.models import Organization
from core import clock
from inference.catalog import lifecycle
from inference.models import ModelLimit
from tests.support.builders import catalog_rows
from tests.support.pages.console import Insert, ago, page_at, text_of, words


def test_the_catalog_lists_models_with_prices_and_own_use(console: Client, insert: Insert) -> None:
    entry = catalog_rows.published("acme/demo-8b", tool_calling=True)
    catalog_rows.draft("acme/draft")
    catalog_rows.price(entry, clock.now() + timedelta(days=3), input_per_mtok="0.10")
    insert(ago(hours=1), model_identifier="acme/demo-8b")

    said = words(page_at(console, "/console/models"))

    assert re.search(
        r"acme/demo-8b active 0\.10 / 0\.60 USD from \S+ \S+ \S+ 0\.15 USD 0\.60 USD", said
    )
    assert "32,768 tools 1 " in said
    assert "acme/draft" not in said


def test_a_retired_model_names_its_end_and_successor(console: Client) -> None:
    catalog_rows.retired("acme/old")

    assert "acme/old" in words(page_at(console, "/console/models")).partition("Ended models")[2]
    said = words(page_at(console, "/console/models/acme/old"))
    assert "This model ended on" in said
    assert "Its successor is acme/old-next" in said
    assert "A request to it" not in said


def test_a_models_page_shows_past_and_announced_prices(console: Client) -> None:
    entry = catalog_rows.draft("acme/demo-8b")
    catalog_rows.price(entry, clock.now() - timedelta(days=30), input_per_mtok="0.20")
    catalog_rows.price(entry, clock.now() - timedelta(days=3), input_per_mtok="0.15")
    catalog_rows.price(entry, clock.now() + timedelta(days=3), input_per_mtok="0.10")
    catalog_rows.deployed(entry)
    lifecycle.publish(entry)

    said = text_of(page_at(console, "/console/models/acme/demo-8b"), "prices")

    assert said.count("now") == said.count("announced") == said.count("past") == 1
    assert said.index("0.10 USD 0.60 USD announced") < said.index("0.15 USD 0.60 USD now")
    assert "0.20 USD 0.60 USD past" in said


def test_own_use_and_limits_are_those_of_the_organization(
    console: Client, organization: Organization, stranger: Organization, insert: Insert
) -> None:
    entry = catalog_rows.published("acme/demo-8b")
    for owner in (organization, stranger):
        ModelLimit.objects.create(
            organization=owner, entry=entry, requests_per_minute=7 if owner is organization else 9
        )
        for _ in range(2):
            insert(ago(hours=1), organization_id=str(owner.pk), model_identifier="acme/demo-8b")
    insert(ago(hours=1), model_identifier="acme/demo-8b", outcome="backend_error", http_status=500)

    page = page_at(console, "/console/models/acme/demo-8b")

    assert "Requests 3" in text_of(page, "own-use")
    assert "1 (33.3 %)" in text_of(page, "own-use")
    assert "7 requests a minute" in words(page)
    assert "9 requests a minute" not in words(page)


def test_a_superseded_model_says_which_keys_to_move(
    console: Client, insert: Insert, key: NewKey
) -> None:
    entry = catalog_rows.published("acme/old")
    lifecycle.supersede(entry, catalog_rows.published("acme/new"), clock.now() + timedelta(days=9))
    insert(ago(hours=1), model_identifier="acme/old", api_key_id=str(key.api_key.pk))

    said = text_of(page_at(console, "/console/models/acme/old"), "ending")

    assert "8 days left" in said
    assert "Move to acme/new" in said
    assert "checkout" in said


def test_unknown_models_and_drafts_are_not_found(console: Client) -> None:
    catalog_rows.draft("acme/draft")

    assert console.get("/console/models/acme/draft").status_code == 404
    assert console.get("/console/models/acme/nothing").status_code == 404
