"""Every page of the admin, light and dark, wide and narrow: axe finds nothing serious."""

from __future__ import annotations

import pytest
from django.contrib import admin
from playwright.sync_api import Page

from accounts.models import User
from inference.models import Backend, ModelEntry
from tests.browser.conftest import Visit
from tests.support.builders import speech_rows
from tests.support.pages.axe import every_look, serious_findings

pytestmark = pytest.mark.timeout(600)


def findings_of(page: Page, name: str) -> list[str]:
    return [
        f"{name} {look}: {each}" for look, _ in every_look(page) for each in serious_findings(page)
    ]


def findings(visit: Visit, *addresses: str) -> list[str]:
    found = []
    for address in addresses:
        found += findings_of(visit.open(address), address)
    return found


def lists() -> list[str]:
    return [
        f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for model in admin.site._registry
    ]


def test_the_lists_and_forms_are_accessible(operating: Visit) -> None:
    visit = operating
    gateway, page = visit.gateway, visit.page
    gateway.chat("say: hello")
    gateway.rows_when(1)
    speech_rows.clone(gateway.organization, "Somebody")
    found = findings(visit, "/admin/", "/admin/inference/", "/admin/usage/usagerow/sums/")
    addresses = lists()
    assert len(addresses) >= 15
    for address in addresses:
        found += findings(visit, address)
        rows = page.locator("#result_list tbody th a").all()
        row = rows[0].get_attribute("href") if rows else None
        if page.locator(f'a[href^="{address}add/"]').count():
            found += findings(visit, f"{address}add/")
        if row:
            found += findings(visit, row)
    assert found == []


def test_the_pages_of_single_actions_are_accessible(operating: Visit) -> None:
    visit = operating
    gateway, page = visit.gateway, visit.page
    key, user = gateway.api_key, User.objects.latest("created_at")
    found = findings(visit, f"/admin/accounts/user/{user.pk}/password/")

    found += findings(visit, f"/admin/accounts/user/{user.pk}/password-link/")
    page.click("input[value='Make the link']")
    found += findings_of(page, "the one-time link")

    for label in ("Revoke", "Rotate"):
        visit.open(f"/admin/accounts/apikey/{key.pk}/change/")
        page.click(f".object-tools >> text={label}")
        found += findings_of(page, f"{label} a key")
    page.click(".submit-row input[type=submit]")
    found += findings_of(page, "the secret of a new key")

    found += findings(visit, f"/admin/key/{key.pk}/", f"/admin/customer/{gateway.organization.pk}/")
    visit.open("/admin/")
    page.fill("#svc-find", "nobody")
    page.click(".svc-find [type=submit]")
    found += findings_of(page, "a search")

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    visit.open(f"/admin/inference/modelentry/{entry.pk}/change/")
    verbs = [each.get_attribute("href") or "" for each in page.locator(".object-tools a").all()]
    assert any(each.endswith("/supersede/") for each in verbs)
    found += findings(visit, *verbs)

    for address in (
        f"/admin/inference/backend/{Backend.objects.get(name='simulator').pk}/test/",
        f"/admin/speech/speechbackend/{speech_rows.backend().pk}/test/",
    ):
        found += findings(visit, address)
        page.click("input[value=Test]")
        page.wait_for_selector("[role=status]", timeout=60_000)
        found += findings_of(page, f"the result of {address}")
    found += findings(visit, "/admin/inference/backend/add-server/")
    page.fill("#id_base_url", Backend.objects.get(name="simulator").base_url)
    page.fill("#id_models", "acme/not-priced")
    page.click("text=Check")
    page.click("text=Publish selected", timeout=60_000)
    page.wait_for_selector("#missing")
    found += findings_of(page, "what a new server lacks")
    found += findings(visit, "/admin/password_change/")
    page.click("#logout-form button")
    found += findings_of(page, "logged out")
    found += findings(visit, "/admin/login/")
    assert found == []
