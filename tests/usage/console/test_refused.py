"""Refused requests in the console: the tab, the request, the key and the overview."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.keys.keys import NewKey
from accounts.models import Organization
from core.clock import now
from tests.support.builders.receipts import refusal
from tests.support.pages.console import page_at, text_of, words
from tests.usage.console.test_requests import listed, older
from usage.refusals import recorder
from usage.refusals.recorder import Batch

PATH = "/console/northwind/requests/refused"
MODEL = "acme/demo-8b"


def refuse(organization: Organization, key: NewKey, times: int = 1, **facts: Any) -> list[str]:
    """Refuse requests now; return their ids, oldest first."""
    own = {"organization_id": str(organization.pk), "api_key_id": str(key.api_key.pk), **facts}
    first = now() - timedelta(milliseconds=times)
    made = [
        refusal(**own, occurred_at=first + timedelta(milliseconds=number))
        for number in range(times)
    ]
    recorder.add(Batch(refused=Counter(map(recorder._key_of, made)), newest=made))
    return [each.request_id for each in made]


def test_the_tab_counts_by_error_and_key_and_lists_the_newest(
    console: Client, organization: Organization, key: NewKey, stranger: Organization
) -> None:
    missing = refuse(organization, key, 60)
    [wrong] = refuse(organization, key, error="invalid-field", status=400, model=MODEL)
    refuse(stranger, key, 7)

    shown = page_at(console, PATH)

    assert "61 refused" in text_of(shown, "refused")
    assert re.search("model_not_found checkout . 60", text_of(shown, "refused"))
    assert listed(shown) == [wrong, *reversed(missing)][:50]
    assert listed(page_at(console, f"{PATH}{older(shown)}")) == missing[10::-1]
    for query, count in (
        ("error=invalid-field", 1),
        (f"model={MODEL}", 1),
        (f"api_key_id={key.api_key.pk}&error=model_not_found", 60),
        ("start=2026-01-01&end=2026-01-02", 0),
        ("error=nothing", 0),
    ):
        filtered = page_at(console, f"{PATH}?{query}")
        assert len(listed(filtered)) == min(count, 50), query
        assert f"{count} refused" in words(filtered) or "Not counted" in words(filtered), query
    assert page_at(console, f"{PATH}?cursor=nonsense", 400)


def test_a_refused_request_is_found_with_its_cause_and_cure(
    console: Client, organization: Organization, key: NewKey, stranger: Organization
) -> None:
    [own] = refuse(organization, key, message="'n' is <b>2</b>.", error="unsupported_parameter")
    [foreign] = refuse(stranger, key)

    found = console.post("/console/northwind/requests", {"request_id": own}, follow=True)

    shown = found.content.decode()
    assert "such as n above 1" in text_of(shown, "failure")
    assert 'href="/docs/errors/#unsupported_parameter"' in shown
    assert "“'n' is <b>2</b>.”" in words(shown.replace("&lt;b&gt;", "&lt;b&gt;"))
    assert page_at(console, f"/console/northwind/requests/{foreign}", 404)


@pytest.mark.django_db
def test_the_key_and_the_overview_say_what_was_refused(
    console: Client, organization: Organization, key: NewKey, stranger: Organization
) -> None:
    key_page = f"/console/northwind/keys/{key.api_key.pk}"
    refuse(stranger, key, 3)
    assert "None in the last 30 days." in text_of(page_at(console, key_page), "refused")
    assert "none was refused" in words(page_at(console, "/console/"))
    refuse(organization, key, 12)
    refuse(organization, key, 2, error="invalid-field")

    assert "12 model_not_found 2 invalid-field" in text_of(page_at(console, key_page), "refused")
    card = text_of(page_at(console, "/console/"), "refused")
    assert "14 refused : 12 model_not_found by checkout, 2 invalid-field by checkout." in card


def test_what_was_not_counted_is_not_called_nothing(
    console: Client, organization: Organization, settings: Settings
) -> None:
    settings.SVC_THROTTLE_COUNTERS = False
    recorder.maintain(now())
    settings.SVC_THROTTLE_COUNTERS = True

    assert "Not counted" in text_of(page_at(console, PATH), "refused")
    assert "none was refused" not in words(page_at(console, "/console/"))


def test_operators_see_refusals_of_all(
    admin_client: Client, organization: Organization, key: NewKey
) -> None:
    [refused] = refuse(organization, key)

    shown = page_at(admin_client, "/admin/usage/refusal/")

    assert "model_not_found" in shown
    assert "Northwind" in shown
    assert page_at(admin_client, f"/admin/usage/refusal/{refused}/change/")
    assert admin_client.get("/admin/usage/refusal/add/").status_code == 403
