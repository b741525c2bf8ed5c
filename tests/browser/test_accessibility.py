"""Every page of the console and the docs, light and dark, wide and narrow: axe finds nothing serious."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Page, expect

from core.errors import ServerOverloaded
from tests.browser.conftest import Person, Visit, log_in
from tests.support.builders import speech_rows
from tests.support.builders.receipts import speech_receipt
from tests.support.live import Gateway
from tests.support.pages.axe import findings
from tests.support.until import until
from usage.ledger import rows
from usage.models import Refusal

pytestmark = pytest.mark.timeout(400)

PAGES = (
    "",
    "playground",
    "voices",
    "voices/{clone_id}/delete",
    "voices/pronunciations",
    "models",
    "models/acme/demo-8b",
    "usage",
    "usage?by=key&metric=tokens",
    "usage?surface=speech&metric=audio&by=key",
    "voices?gender=female&q=a",
    "usage?start=2026-02-02&until=2026-02-01",
    "usage/totals.csv?start=2026-02-02&until=2026-02-01",
    "requests",
    "requests?surface=speech",
    "requests/refused",
    "requests/{refused_id}",
    "requests/{request_id}",
    "requests/{failed_id}",
    "requests/{spoken_id}",
    "keys",
    "keys/new",
    "keys/{key_id}",
    "keys/{key_id}/rotate",
    "keys/{key_id}/revoke",
    "organization",
    "password",
    "profile",
    "nowhere",
)
DOCS = (
    "",
    "inference/",
    "speech/",
    "management/",
    "errors/",
    "models/",
    "search?q=stop",
    "guides/quick-start",
    "guides/streaming",
    "guides/limits",
    "guides/from-openai",
    "guides/sdk-defaults",
)
BEFORE_THE_LOGIN = ("password/forgotten", "password/set/x/y", "password/was-set", "login")


def serve(page: Page, address: str, body: str) -> None:
    """Open ``body`` as the answer of ``address``, for pages that need a fault to appear."""
    page.route(address, lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(address)
    page.unroute(address)


@pytest.fixture
def page(visit: Visit) -> Iterator[Page]:
    """A page whose answers of 4xx are no problem: some are looked at here."""
    yield visit.page
    visit.problems[:] = [
        each for each in visit.problems if not each.startswith("4") or "/static/" in each
    ]


def test_the_pages_are_accessible_and_fit(page: Page, gateway: Gateway, member: Person) -> None:
    good = gateway.chat("say: hello").headers["x-request-id"]
    gateway.chat("[[sim fault=status@500]]")
    failed = next(row.request_id for row in gateway.rows_when(2) if row.request_id != good)
    refused = gateway.chat("Hello", model="gpt-9").headers["x-request-id"]
    until(Refusal.objects.filter(request_id=refused).exists)
    spoken = speech_receipt(organization_id=str(gateway.organization.pk))
    rows.insert([spoken])
    clone = speech_rows.clone(gateway.organization, "Unbreakable" * 3 + "Names12")
    found: list[str] = []
    for path in BEFORE_THE_LOGIN:
        page.goto(f"{gateway.url}/console/{path}")
        found += findings(page, path)
    log_in(page, gateway.url, member)
    for path in PAGES:
        address = path.format(
            request_id=good,
            failed_id=failed,
            refused_id=refused,
            spoken_id=spoken.request_id,
            key_id=gateway.api_key.pk,
            clone_id=clone.pk,
        )
        page.goto(f"{gateway.url}/console/{address}")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        found += findings(page, path)
    assert found == []


@pytest.mark.parametrize("paths", [DOCS[:5], DOCS[5:]], ids=["reference", "guides"])
def test_the_docs_are_accessible_and_fit(
    page: Page, gateway: Gateway, member: Person, paths: tuple[str, ...]
) -> None:
    log_in(page, gateway.url, member)
    found: list[str] = []
    for path in paths:
        page.goto(f"{gateway.url}/docs/{path}")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        found += findings(page, path)
    assert found == []


def test_the_answers_of_forms_are_accessible(page: Page, gateway: Gateway, member: Person) -> None:
    log_in(page, gateway.url, member)
    page.goto(f"{gateway.url}/console/keys/new")
    page.fill("#id_label", "read aloud")
    page.click("main button.primary")
    page.wait_for_selector("#secret")
    found = findings(page, "the secret of a new key")

    page.goto(f"{gateway.url}/console/profile")
    page.evaluate("document.querySelector('main [name=csrfmiddlewaretoken]').value = 'stale'")
    page.click("main button.primary")
    expect(page.locator("main")).to_contain_text("not sent from a current page")
    found += findings(page, "a stale form")

    faults: dict[str, dict[str, Any]] = {
        "console/export_busy.html": {"problem": ServerOverloaded()},
        "refused.html": {"status": 503, "message": "Too many requests wait. Try again soon."},
    }
    for template, context in faults.items():
        serve(page, f"{gateway.url}/fault", render_to_string(template, context))
        found += findings(page, template)
    assert found == []
