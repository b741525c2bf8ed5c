"""A person of two organizations goes on to the other in a second window; the first one's page stays."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import ApiKey, Membership, Organization, User
from tests.browser.conftest import Person, log_in
from tests.support.live import Gateway
from tests.support.pages.axe import every_look, serious_findings
from usage.models import SpeechRow, UsageRow


@pytest.fixture
def other(gateway: Gateway, member: Person) -> Organization:
    """Another organization of the member, who joined the gateway's own first."""
    organization = Organization.objects.create(name=f"Second {secrets.token_hex(4)}")
    Membership.objects.create(user=User.objects.get(email=member.email), organization=organization)
    return organization


@pytest.fixture
def page(chromium: Browser, gateway: Gateway, member: Person) -> Iterator[Page]:
    """The first window, logged in. Refusals, which a browser logs, are expected in it."""
    context = chromium.new_context(base_url=gateway.url)
    page = context.new_page()
    log_in(page, gateway.url, member)
    yield page
    context.close()


def pick(page: Page, organization: Organization) -> None:
    """Go on to ``organization`` in a second window."""
    window = page.context.new_page()
    window.goto("/console/")
    window.click("details.switch summary")
    window.click(f"text={organization.name}")
    window.wait_for_url(f"**/console/{organization.slug}/")
    expect(window.locator("details.switch summary")).to_have_text(organization.name)
    window.close()


def test_the_playground_of_the_first_charges_the_first(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/playground?model=acme/demo-8b")
    pick(page, other)
    page.fill("#message", "say: for the first")
    page.click("#send")
    expect(page.locator(".message.assistant .content")).to_have_text("for the first")
    expect(page.locator(".receipt .rounded")).to_be_visible()
    assert len(gateway.rows()) == 1
    assert not UsageRow.objects.filter(organization_id=other.pk).exists()


def test_the_voices_of_the_first_charge_the_first(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/voices")
    pick(page, other)
    page.fill("#text", "For whom is this?")
    for transport in ("file", "stream", "socket"):
        page.select_option("#transport", transport)
        page.click("#speak button.primary")
        expect(page.locator("#characters")).to_have_text("17", timeout=60_000)
    assert SpeechRow.objects.filter(organization_id=gateway.organization.pk).count() == 3
    assert not SpeechRow.objects.filter(organization_id=other.pk).exists()


def test_the_form_of_the_first_makes_a_key_of_the_first(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/keys/new")
    pick(page, other)
    page.check("[name=scope][value=inference]")
    page.fill("#id_label", "for the first")
    page.click("main button.primary")
    page.wait_for_selector("#secret")
    assert gateway.organization.api_keys.filter(label="for the first").exists()
    assert not ApiKey.objects.filter(organization=other).exists()


def test_the_menu_of_organizations_is_accessible_and_fits(page: Page, other: Organization) -> None:
    page.goto("/console/usage")
    for look, width in every_look(page):
        page.evaluate("document.querySelector('details.switch').open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, look
        menu = page.locator("details.switch .menu")
        assert menu.evaluate("each => each.getBoundingClientRect().left") >= 0, look
        assert serious_findings(page) == [], look
    page.keyboard.press("Tab")
    page.click("h1")
    expect(page.locator("details.switch .menu")).to_be_hidden()
