"""Requests appear in the console as they end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.browser.conftest import Visit

SLOWLY = 60_000
"""Milliseconds: the machine may be busy."""


@pytest.fixture
def reloads(consoling: Visit) -> list[str]:
    """The pages that were loaded."""
    loaded: list[str] = []
    consoling.page.on("load", lambda page: loaded.append(page.url))
    return loaded


def test_requests_appear_without_a_reload(consoling: Visit, reloads: list[str]) -> None:
    gateway = consoling.gateway
    page = consoling.open("/console/requests")
    expect(page.locator("#live-state")).to_have_text("Live", timeout=SLOWLY)
    expect(page.locator(".empty")).to_contain_text("No requests here")

    for number in range(1, 4):
        asked = gateway.chat(f"say: number {number}").headers["x-request-id"]
        expect(page.locator("[data-row]")).to_have_count(number, timeout=SLOWLY)
        first = page.locator("[data-row] a").first
        expect(first).to_have_attribute("href", re.compile(f"/console/[^/]+/requests/{asked}"))

    expect(page.locator("#live-news")).to_have_text(re.compile(r"\d new requests?"), timeout=SLOWLY)
    assert len(reloads) == 1
    page.locator("[data-row] a").first.click()
    expect(page.locator("h1")).to_be_visible()


def test_a_paused_list_stays_and_catches_up(consoling: Visit) -> None:
    gateway = consoling.gateway
    gateway.chat("say: first")
    page = consoling.open("/console/requests")
    expect(page.locator("#live-state")).to_have_text("Live", timeout=SLOWLY)

    page.click("#live-pause")
    expect(page.locator("#live-state")).to_have_text("Paused")
    for number in range(60):
        gateway.chat(f"say: number {number}")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.click("#live-pause")

    # The newest page, and a way to the others.
    expect(page.locator("[data-row]")).to_have_count(50, timeout=SLOWLY)
    page.click("text=Older")
    expect(page.locator("[data-row]")).to_have_count(11, timeout=SLOWLY)


def test_a_lost_connection_is_said_and_made_again(consoling: Visit) -> None:
    gateway = consoling.gateway
    page = consoling.page
    sockets: list[WebSocketRoute] = []

    def connected(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket("**/console/requests/live**", connected)
    consoling.open("/console/requests")
    expect(page.locator("#live-state")).to_have_text("Live", timeout=SLOWLY)

    sockets[0].close()
    expect(page.locator("#live-state")).to_have_text("Disconnected, trying again")
    asked = gateway.chat("say: meanwhile").headers["x-request-id"]

    expect(page.locator("#live-state")).to_have_text("Live", timeout=SLOWLY)
    expect(page.locator("[data-row]")).to_have_count(1, timeout=SLOWLY)
    expect(page.locator("[data-row] a")).to_have_attribute(
        "href", re.compile(f"/console/[^/]+/requests/{asked}")
    )


def test_the_end_of_the_session_is_said(consoling: Visit) -> None:
    page = consoling.open("/console/requests")
    expect(page.locator("#live-state")).to_have_text("Live", timeout=SLOWLY)

    cookies: list[Any] = consoling.page.context.cookies()
    consoling.page.context.clear_cookies()
    consoling.gateway.chat("say: hello")

    expect(page.locator("#live-state")).to_contain_text("log in again", timeout=SLOWLY)
    assert any(each["name"] == "sessionid" for each in cookies)
