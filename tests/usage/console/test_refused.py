"""Refused requests in the console: the tab, the request, the key and the overview."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.keys.keys import NewKey
from accounts.keys.refusals import Refusal as Refused
from accounts.models import Organization
from core.clock import now
from core.ids import request_id
from tests.support.pages.console import text_of, words
from usage.refusals import recorder
from usage.refusals.recorder import Batch

PATH = "/console/northwind/requests/refused"
MODEL = "acme/demo-8b"


def refuse(organization: Organization, key: NewKey, times: int = 1, **facts: object) -> list[str]:
    """Refuse requests now; return their ids, oldest first."""
    known = {
        "digests": (),
        "route": "chat",
        "status": 404,
        "error": "model_not_found",
        "param": "model",
        "message": "The model 'gpt-9' does not exist.",
        "model": "",
        "organization_id": str(organization.pk),
        "api_key_id": str(key.api_key.pk),
    }
    made = [
        Refused(
            request_id=request_id(),
            occurred_at=now() - timedelta(milliseconds=times - number),
            **{**known, **facts},  # type: ignore[arg-type]  # as the test says
        )
        for number in range(times)
    ]
    recorder.add(Batch(refused=Counter(map(recorder._key_of, made)), newest=made))
    return [each.request_id for each in made]


def page(console: Client, path: str = PATH, status: int = 200) -> str:
    answer = console.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def listed(shown: str) -> list[str]:
    return re.findall(r'href="/console/northwind/requests/(req_\w+)"', shown)


def test_the_tab_counts_by_error_and_key_and_lists_the_newest(
    console: Client, organization: Organization, key: NewKey, stranger: Organization
) -> None:
    missing = refuse(organization, key, 60)
    [wrong] = refuse(organization, key, error="invalid-field", status=400, model=MODEL)
    refuse(stranger, key, 7)

    shown = page(console)

    assert "61 refused" in text_of(shown, "refused")
    assert re.search("model_not_found checkout . 60", text_of(shown, "refused"))
    assert listed(shown) == [wrong, *reversed(missing)][:50]
    older = re.search(r'href="(\?[^"]+)" rel="next"', shown)
    assert older is not None
    assert listed(page(console, PATH + older[1].replace("&amp;", "&"))) == missing[10::-1]
    for query, count in (
        ("error=invalid-field", 1),
        (f"model={MODEL}", 1),
        (f"api_key_id={key.api_key.pk}&error=model_not_found", 60),
        ("start=2026-01-01&end=2026-01-02", 0),
        ("error=nothing", 0),
    ):
        filtered = page(console, f"{PATH}?{query}")
        assert len(listed(filtered)) == min(count, 50), query
        assert f"{count} refused" in words(filtered) or "Not counted" in words(filtered), query
    assert page(console, f"{PATH}?cursor=nonsense", 400)


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
    assert page(console, f"/console/northwind/requests/{foreign}", 404)


@pytest.mark.django_db
def test_the_key_and_the_overview_say_what_was_refused(
    console: Client, organization: Organization, key: NewKey, stranger: Organization
) -> None:
    key_page = f"/console/northwind/keys/{key.api_key.pk}"
    refuse(stranger, key, 3)
    assert "None in the last 30 days." in text_of(page(console, key_page), "refused")
    assert "none was refused" in words(page(console, "/console/"))
    refuse(organization, key, 12)
    refuse(organization, key, 2, error="invalid-field")

    assert "12 model_not_found 2 invalid-field" in text_of(page(console, key_page), "refused")
    card = text_of(page(console, "/console/"), "refused")
    assert "14 refused : 12 model_not_found by checkout, 2 invalid-field by checkout." in card


def test_what_was_not_counted_is_not_called_nothing(
    console: Client, organization: Organization, settings: Settings
) -> None:
    settings.SVC_THROTTLE_COUNTERS = False
    recorder.maintain(now())
    settings.SVC_THROTTLE_COUNTERS = True

    assert "Not counted" in text_of(page(console), "refused")
    assert "none was refused" not in words(page(console, "/console/"))


def test_operators_see_refusals_of_all(
    admin_client: Client, organization: Organization, key: NewKey
) -> None:
    [refused] = refuse(organization, key)

    shown = page(admin_client, "/admin/usage/refusal/")

    assert "model_not_found" in shown
    assert "Northwind" in shown
    assert page(admin_client, f"/admin/usage/refusal/{refused}/change/")
    assert admin_client.get("/admin/usage/refusal/add/").status_code == 403
