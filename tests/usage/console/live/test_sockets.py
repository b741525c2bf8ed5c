"""The WebSocket of live requests, against gateway processes."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from accounts.models import Membership, Organization
from tests.support.builders.receipts import receipt
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.pages.signed_in import SignedIn, sign_in
from tests.support.servers.redis_store import REDIS_URL
from tests.support.until import until
from usage.console.live.consumer import CHECK_SECONDS
from usage.ledger import rows

SOON = 60.0
"""Less than ``CHECK_SECONDS``, after which every page reads again in any case."""


@contextmanager
def watch(
    browser: SignedIn, surface: str = "", organization: object = None, **headers: str
) -> Iterator[ClientConnection]:
    """Open the socket and take its first message."""
    owner = organization or browser.gateway.organization.pk
    path = f"/console/requests/live?organization={owner}&surface={surface}"
    with browser.connect(path, **headers) as socket:
        assert json.loads(socket.recv(SOON)) == {"type": "ended"}
        yield socket


def listed(browser: SignedIn) -> list[str]:
    """The ids of the requests that the page shows now."""
    page = browser.get(f"/console/{browser.gateway.organization.slug}/requests")
    assert page.status_code == 200
    return re.findall(r'data-row="\S+ (\w+)"', page.text)


@pytest.fixture
def browser(gateway: Gateway) -> SignedIn:
    return sign_in(gateway)


@pytest.fixture
def foreign(gateway: Gateway) -> Organization:
    return Organization.objects.create(name=f"foreign {secrets.token_hex(4)}")


@pytest.mark.long
def test_a_message_that_is_lost_costs_seconds(browser: SignedIn) -> None:
    """No process announces this row, as when Redis drops a message: a channel that is full, or away."""
    with watch(browser) as socket:
        lost = receipt(organization_id=str(browser.gateway.organization.pk))
        rows.insert([lost], datetime.now(UTC))
        socket.recv(CHECK_SECONDS + SOON)

    assert listed(browser) == [lost.request_id]


def test_a_request_is_told_as_it_ends_and_to_no_page_of_speech_or_of_another_organization(
    browser: SignedIn, foreign: Organization
) -> None:
    stranger = sign_in(replace(browser.gateway, organization=foreign))
    with (
        watch(browser) as own,
        watch(browser, "speech") as speech,
        watch(stranger) as other,
    ):
        asked = browser.gateway.chat("say: hello").headers["x-request-id"]
        own.recv(SOON)
        for socket in (speech, other):
            with pytest.raises(TimeoutError):
                socket.recv(1.5)

    assert listed(browser) == [asked]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"cookie": "sessionid=nonsense"}, 401), ({"origin": "https://evil.example"}, 403), ({}, 401)],
    ids=["another session", "another page", "another organization"],
)
def test_only_a_page_of_the_console_may_watch_its_own_organization(
    browser: SignedIn, foreign: Organization, headers: dict[str, str], status: int
) -> None:
    named = None if headers else foreign.pk
    with pytest.raises(InvalidStatus) as refused, watch(browser, organization=named, **headers):
        pass

    assert refused.value.response.status_code == status


def test_a_message_ends_the_socket(browser: SignedIn) -> None:
    with watch(browser) as socket:
        socket.send("hello")
        assert json.loads(socket.recv(SOON))["type"] == "error"
        with pytest.raises(ConnectionClosed):
            socket.recv(SOON)
        assert socket.close_code == 4400


def test_messages_are_at_least_a_second_apart(browser: SignedIn) -> None:
    with watch(browser) as socket:
        ending = threading.Event()

        def send() -> None:
            while not ending.is_set():
                browser.gateway.chat("say: hello")

        sender = threading.Thread(target=send)
        sender.start()
        try:
            socket.recv(SOON)
            began, told = time.monotonic(), 0
            while (passed := time.monotonic() - began) < 3:
                socket.recv(SOON)
                told += 1
        finally:
            ending.set()
            sender.join()

    assert 1 <= told <= passed + 4  # and one second of the last message


@pytest.mark.long
def test_a_removed_member_and_a_logged_out_one_stop_watching(gateway: Gateway) -> None:
    removed, left = sign_in(gateway), sign_in(gateway)
    with watch(removed) as first, watch(left) as second:
        Membership.objects.filter(user=removed.user).delete()
        left.post("/console/logout", b"")
        for socket in (first, second):
            deadline = time.monotonic() + 60
            with suppress(ConnectionClosed):
                while time.monotonic() < deadline:
                    socket.recv(2 * CHECK_SECONDS)
            assert socket.close_code == 4401


@pytest.mark.long
@pytest.mark.redis
def test_rows_of_another_process_are_told(
    browser: SignedIn, start_gateway: Callable[..., Gateway]
) -> None:
    """The other one answers a request, and dies in the middle of a second one.

    A channel layer without messages is no failure, and pages beyond the share are refused.
    """
    began = time.monotonic()
    here = start_gateway(REDIS_URL=f"{REDIS_URL}/9", SVC_MAX_WATCHERS="4")
    there = start_gateway(REDIS_URL=f"{REDIS_URL}/9")
    watching = replace(browser, gateway=here)
    # The layer's blocking reads and redis-py's own timeout are 5 s.
    until(lambda: time.monotonic() - began > 8)
    with watch(watching) as socket:
        with pytest.raises(InvalidStatus) as refused, watch(watching):
            pass
        assert refused.value.response.status_code == 503
        asked = there.chat("say: hello").headers["x-request-id"]
        # The first announcement may come after the row.
        socket.recv(2 * CHECK_SECONDS)
        until(lambda: asked in listed(watching))

        asked = there.chat("say: hello again").headers["x-request-id"]
        socket.recv(SOON)
        assert asked in listed(watching)

        with RawClient(there) as client:
            client.chat("[[sim tokens=2000 pace=50]]", stream=True)
            client.read_until(2, b"data: ")
            there.command.kill()
        # Its journal is adopted by the process that lives.
        interrupted = until(
            lambda: next(
                (row.request_id for row in browser.gateway.rows() if row.outcome == "interrupted"),
                None,
            )
        )
        socket.recv(SOON)
        assert interrupted in listed(watching)
    assert "channel layer failed" not in here.command.log.read_text()
