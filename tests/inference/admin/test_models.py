"""The catalog in the admin, as an operator clicks through it."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.models import Organization
from core import clock
from inference.catalog import lifecycle
from inference.catalog.lifecycle import Status, status
from inference.models import ModelEntry, Price
from tests.support.builders import catalog_rows
from tests.support.pages.admin_forms import MODELS, entry_form, page_of, text_of

pytestmark = pytest.mark.django_db


def save(client: Client, entry: ModelEntry, **changes: Any) -> Any:
    return client.post(page_of(entry), entry_form(entry, **changes))


def test_the_list_shows_each_model_with_its_status_and_price(operator: Client) -> None:
    catalog_rows.published("acme/active", tool_calling=True)
    entry = catalog_rows.published("acme/leaving")
    lifecycle.supersede(
        entry, catalog_rows.published("acme/next"), clock.now() + timedelta(days=12, hours=1)
    )
    catalog_rows.draft("acme/draft")
    catalog_rows.retired("acme/gone", catalog_rows.published("acme/other"))

    answer = operator.get(MODELS)

    assert answer.status_code == 200
    shown = text_of(answer)
    assert "superseded, 12 days left" in shown
    assert "0.15 / 0.60 USD" in shown
    for badge in ('svc-good">active', 'svc-quiet">draft', 'svc-warn">superseded'):
        assert badge in answer.content.decode()
    assert "Delete selected" not in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=draft", {"acme/draft"}),
        ("status=active", {"acme/next", "acme/last"}),
        ("status=superseded", {"acme/soon", "acme/undated"}),
        ("status=retired", {"acme/gone"}),
        ("shutdown=soon", {"acme/soon"}),
        ("q=soon", {"acme/soon"}),
    ],
)
def test_the_list_is_filtered_and_searched(operator: Client, query: str, found: set[str]) -> None:
    catalog_rows.draft("acme/draft")
    last = catalog_rows.published("acme/last")
    following = catalog_rows.published("acme/next")
    lifecycle.supersede(
        catalog_rows.published("acme/soon"), following, clock.now() + timedelta(days=29)
    )
    lifecycle.supersede(catalog_rows.published("acme/undated"), following)
    catalog_rows.retired("acme/gone", last)

    answer = operator.get(f"{MODELS}?{query}")

    assert {row.identifier for row in answer.context["cl"].result_list} == found


def test_fields_and_defaults_are_checked_where_they_are_entered(operator: Client) -> None:
    entry = catalog_rows.published()
    answer = save(operator, entry, extra_fields='{"stream": true}', defaults='{"top_p": 2}')
    assert "Leave stream out; it comes with each request." in text_of(answer)
    assert "'top_p' must be a number between 0 and 1." in text_of(answer)

    answer = save(operator, entry, keep_alive_seconds="0")
    assert "Give 1 to 3600 seconds." in text_of(answer)

    good = {"extra_fields": '{"top_k": 40}', "defaults": '{"top_p": 0.9}'}
    assert save(operator, entry, **good, keep_alive_seconds="30").status_code == 302
    entry.refresh_from_db()
    assert (entry.extra_fields, entry.defaults) == ({"top_k": 40}, {"top_p": 0.9})
    assert entry.keep_alive_seconds == 30
    empty = {"extra_fields": "", "defaults": "", "keep_alive_seconds": ""}
    assert save(operator, entry, **empty).status_code == 302
    entry.refresh_from_db()
    assert (entry.extra_fields, entry.defaults) == ({}, {})
    assert ModelEntry.objects.get().keep_alive_seconds is None


def test_an_operator_adds_a_draft_with_its_price(operator: Client) -> None:
    record = catalog_rows.weights()

    answer = operator.post(
        f"{MODELS}add/",
        entry_form(
            None,
            identifier="acme/new",
            weights=record.pk,
            **{"prices-0-input_per_mtok": "0.15", "prices-0-output_per_mtok": "0.60"},
        ),
    )

    assert answer.status_code == 302, answer.context["errors"]
    entry = ModelEntry.objects.get()
    assert status(entry, clock.now()) is Status.DRAFT
    assert entry.prices.get().input_per_mtok == Decimal("0.15")


def test_a_stranger_is_asked_to_log_in() -> None:
    answer = Client().post(page_of(catalog_rows.ready(), "publish"))

    assert answer.status_code == 302
    assert "/admin/login/" in answer["location"]


def test_the_page_shows_exactly_what_clients_are_served(operator: Client) -> None:
    entry = catalog_rows.published()

    content = operator.get(page_of(entry)).content.decode()

    panel = re.search(r'<pre class="svc-served" tabindex="0">(.*?)</pre>', content, re.DOTALL)
    assert panel
    shown = json.loads(html.unescape(panel[1]))
    assert shown["id"] == "acme/demo-8b"
    assert shown["pricing"]["input_per_mtok"] == "0.15"
    assert shown["lifecycle"] == {"status": "active", "superseded_by": None, "shutdown_at": None}


@pytest.mark.parametrize(
    ("make", "told"),
    [(catalog_rows.ready, "model_not_found"), (catalog_rows.retired, "model_retired")],
)
def test_the_page_says_why_a_model_is_not_served(operator: Client, make: Any, told: str) -> None:
    shown = text_of(operator.get(page_of(make())))

    assert "Not served:" in shown
    assert told in shown


def test_a_published_model_can_be_neither_renamed_nor_re_pinned_nor_deleted(
    operator: Client,
) -> None:
    entry = catalog_rows.published()
    pinned, other = entry.weights, catalog_rows.weights()

    answer = save(operator, entry, identifier="acme/x", weights=other.pk, context_length=65536)

    assert answer.status_code == 302
    entry.refresh_from_db()
    assert (entry.identifier, entry.weights) == ("acme/demo-8b", pinned)
    assert entry.context_length == 65536
    assert operator.post(page_of(entry, "delete"), {"post": "yes"}).status_code == 403


def test_a_draft_can_be_deleted(operator: Client) -> None:
    entry = catalog_rows.ready()

    operator.post(page_of(entry, "delete"), {"post": "yes"})

    assert not ModelEntry.objects.exists()


def test_nothing_of_a_retired_model_can_be_edited(operator: Client) -> None:
    entry = catalog_rows.retired()

    priced = {"prices-1-input_per_mtok": "9", "prices-1-output_per_mtok": "9"}
    save(operator, entry, context_length=1, **priced)

    entry.refresh_from_db()
    assert entry.context_length == 32768
    assert entry.prices.count() == 1


def test_an_invalid_number_is_shown_as_an_error(operator: Client) -> None:
    entry = catalog_rows.ready()

    answer = save(operator, entry, default_max_output_tokens=99_999)

    assert "default_max_output_tokens must not be above context_length." in text_of(answer)


def test_saving_an_unchanged_model_adds_no_price(operator: Client) -> None:
    entry = catalog_rows.published()

    save(operator, entry)

    assert Price.objects.count() == 1


def test_an_organizations_own_limit_is_set_on_the_model(operator: Client) -> None:
    entry, organization = catalog_rows.published(), Organization.objects.create(name="Acme")

    first = {"organization": organization.pk, "requests_per_minute": "7"}
    form = {f"limits-0-{name}": value for name, value in first.items()}
    answer = save(operator, entry, **form, **{"limits-TOTAL_FORMS": 1})

    assert answer.status_code == 302
    limit = entry.limits.get()
    assert (limit.requests_per_minute, limit.tokens_per_minute) == (7, None)


@pytest.mark.parametrize("page", ["change", "supersede", "publish"])
def test_the_pages_carry_no_inline_script_or_style(operator: Client, page: str) -> None:
    content = operator.get(page_of(catalog_rows.published(), page)).content.decode()

    assert not re.search(r"\son\w+=|\sstyle=|<style", content)
    scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", content)
    assert all("application/json" in script for script in scripts)
