"""Every page of the console, light and dark, wide and narrow: axe finds nothing serious."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Person
from tests.support.builders import speech_rows
from tests.support.live import Gateway
from tests.support.pages.axe import serious_findings

PAGES = (
    "",
    "playground",
    "voices",
    "voices/{clone_id}/delete",
    "models",
    "models/acme/demo-8b",
    "usage",
    "usage?by=key&metric=tokens",
    "usage?start=2026-02-02&until=2026-02-01",
    "requests",
    "requests?surface=speech",
    "requests/{request_id}",
    "requests/{failed_id}",
    "keys",
    "keys/new",
    "password",
    "profile",
    "keys/{key_id}/rotate",
    "keys/{key_id}/revoke",
    "nowhere",
    "../docs/",
    "../docs/inference/",
    "../docs/speech/",
    "../docs/errors/",
)
BEFORE_THE_LOGIN = ("password/forgotten", "password/set/x/y", "password/was-set", "login")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_accessible_and_fit(
    chromium: Browser, gateway: Gateway, member: Person, scheme: str, width: int
) -> None:
    good = gateway.chat("say: hello").headers["x-request-id"]
    gateway.chat("[[sim fault=status@500]]")
    failed = next(row.request_id for row in gateway.rows_when(2) if row.request_id != good)
    clone = speech_rows.clone(gateway.organization, "Unbreakable" * 3 + "Names12")
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    found: list[str] = []
    for path in BEFORE_THE_LOGIN:
        page.goto(f"{gateway.url}/console/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found += [f"{path}: {each}" for each in serious_findings(page)]
    page.fill("#id_username", member.email)
    page.fill("#id_password", member.password)
    page.click("button.primary")
    page.wait_for_url("**/console/")
    for path in PAGES:
        address = path.format(
            request_id=good, failed_id=failed, key_id=gateway.api_key.pk, clone_id=clone.pk
        )
        page.goto(f"{gateway.url}/console/{address}")
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found += [f"{path}: {each}" for each in serious_findings(page)]
    context.close()
    assert found == []
