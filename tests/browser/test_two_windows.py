"""A person of two organizations picks one in a second window; the first window's page stays open."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import ApiKey, Membership, Organization, User
from tests.browser.conftest import Person, log_in
from tests.support.live import Gateway
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
    """Pick ``organization`` in a second window."""
    window = page.context.new_page()
    window.goto("/console/profile")
    with window.expect_navigation():
        window.select_option("#organization", str(organization.pk))
    expect(window.locator("#organization")).to_have_value(str(organization.pk))
    window.close()


def test_the_playground_of_the_first_charges_neither(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/playground?model=acme/demo-8b")
    pick(page, other)
    page.fill("#message", "say: for whom?")
    page.click("#send")
    expect(page.locator("main")).to_contain_text("Another organization was picked")
    page.reload()
    page.fill("#message", "say: for the second")
    page.click("#send")
    expect(page.locator(".message.assistant .content")).to_have_text("for the second")
    expect(page.locator(".receipt .rounded")).to_be_visible()
    assert gateway.rows() == []
    assert UsageRow.objects.filter(organization_id=other.pk).count() == 1


def test_the_voices_of_the_first_charge_neither(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/voices")
    pick(page, other)
    page.fill("#text", "For whom is this?")
    for transport in ("file", "stream"):
        page.select_option("#transport", transport)
        page.click("#speak button.primary")
        expect(page.locator("#speak-problem")).to_contain_text("Another organization was picked")
    organizations = [other.pk, gateway.organization.pk]
    assert not SpeechRow.objects.filter(organization_id__in=organizations).exists()


def test_the_form_of_the_first_makes_no_key(
    page: Page, gateway: Gateway, other: Organization
) -> None:
    page.goto("/console/keys/new")
    pick(page, other)
    page.check("[name=scope][value=inference]")
    page.fill("#id_label", "for whom")
    page.click("main button.primary")
    expect(page.locator("main")).to_contain_text("before you picked another organization")
    assert not ApiKey.objects.filter(organization=other).exists()
