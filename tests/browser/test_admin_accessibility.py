"""Every page of the admin, light and dark, wide and narrow: axe finds nothing serious."""

from __future__ import annotations

import pytest
from django.contrib import admin

from accounts.models import User
from inference.models import Backend, ModelEntry
from tests.browser.conftest import Visit
from tests.support.builders import speech_rows
from tests.support.pages.axe import findings

pytestmark = pytest.mark.timeout(600)


def findings_of(visit: Visit, *addresses: str) -> list[str]:
    found = []
    for address in addresses:
        found += findings(visit.open(address), address, fits=False)
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
    found = findings_of(visit, "/admin/", "/admin/inference/", "/admin/usage/usagerow/sums/")
    addresses = lists()
    assert len(addresses) >= 15
    for address in addresses:
        found += findings_of(visit, address)
        rows = page.locator("#result_list tbody th a").all()
        row = rows[0].get_attribute("href") if rows else None
        if page.locator(f'a[href^="{address}add/"]').count():
            found += findings_of(visit, f"{address}add/")
        if row:
            found += findings_of(visit, row)
            visit.open(row.replace("/change/", "/history/"))
    assert found == []


def test_the_pages_of_single_actions_are_accessible(operating: Visit) -> None:
    visit = operating
    gateway, page = visit.gateway, visit.page
    key, user = gateway.api_key, User.objects.latest("created_at")
    found = findings_of(visit, f"/admin/accounts/user/{user.pk}/password/")

    found += findings_of(visit, f"/admin/accounts/user/{user.pk}/password-link/")
    page.click("input[value='Make the link']")
    found += findings(page, "the one-time link", fits=False)

    for label in ("Revoke", "Rotate"):
        visit.open(f"/admin/accounts/apikey/{key.pk}/change/")
        page.click(f".object-tools >> text={label}")
        found += findings(page, f"{label} a key", fits=False)
    page.click(".submit-row input[type=submit]")
    found += findings(page, "the secret of a new key", fits=False)

    found += findings_of(
        visit, f"/admin/key/{key.pk}/", f"/admin/customer/{gateway.organization.pk}/"
    )
    visit.open("/admin/")
    page.fill("#svc-find", "nobody")
    page.click(".svc-find [type=submit]")
    found += findings(page, "a search", fits=False)

    entry = ModelEntry.objects.get(identifier="acme/demo-8b")
    visit.open(f"/admin/inference/modelentry/{entry.pk}/change/")
    verbs = [each.get_attribute("href") or "" for each in page.locator(".object-tools a").all()]
    assert any(each.endswith("/supersede/") for each in verbs)
    found += findings_of(visit, *verbs)

    for address in (
        f"/admin/inference/backend/{Backend.objects.get(name='simulator').pk}/test/",
        f"/admin/speech/speechbackend/{speech_rows.backend().pk}/test/",
    ):
        found += findings_of(visit, address)
        page.click("input[value=Test]")
        page.wait_for_selector("[role=status]", timeout=60_000)
        found += findings(page, f"the result of {address}", fits=False)
    found += findings_of(visit, "/admin/inference/backend/add-server/")
    page.fill("#id_base_url", Backend.objects.get(name="simulator").base_url)
    page.fill("#id_models", "acme/not-priced")
    page.click("text=Check")
    page.click("text=Publish selected", timeout=60_000)
    page.wait_for_selector("#missing")
    found += findings(page, "what a new server lacks", fits=False)
    found += findings_of(visit, "/admin/password_change/")
    page.click("#logout-form button")
    found += findings(page, "logged out", fits=False)
    found += findings_of(visit, "/admin/login/")
    page.set_viewport_size({"width": 390, "height": 844})
    transformed = "each => getComputedStyle(each).textTransform"
    assert page.locator("[type=submit]").evaluate(transformed) == "none"
    assert found == []
