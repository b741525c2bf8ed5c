"""The WebSocket of live requests, against gateway processes."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2
import pytest
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from accounts.models import Membership, Organization, User
from tests.support.builders.receipts import receipt
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
from tests.support.servers.redis_store import REDIS_URL
from tests.support.until import until
from usage.console.live.consumer import CHECK_SECONDS
from usage.ledger import rows

SOON = 60.0
"""Less than ``CHECK_SECONDS``, after which every page reads again in any case."""


@dataclass
class Browser:
    """A session of a member, at one gateway."""

    gateway: Gateway
    user: User
    client: Client

    @property
    def cookie(self) -> str:
        return f"sessionid={self.client.cookies['sessionid'].value}"

    @contextmanager
    def watch(
        self, surface: str = "", organization: object = None, **headers: str
    ) -> Iterator[ClientConnection]:
        """Open the socket and take its first message."""
        owner = organization or self.gateway.organization.pk
        sent = {"Origin": self.gateway.url, "Cookie": self.cookie, **headers}
        with connect(
            f"ws://127.0.0.1:{self.gateway.port}/console/requests/live"
            f"?organization={owner}&surface={surface}",
            additional_headers={name: value for name, value in sent.items() if value},
            compression=None,
        ) as socket:
            assert json.loads(socket.recv(SOON)) == {"type": "ended"}
            yield socket

    def listed(self) -> list[str]:
        """The ids of the requests that the page shows now."""
        page = httpx2.get(
            f"{self.gateway.url}/console/requests", headers={"cookie": self.cookie}, verify=NO_TLS
        )
        assert page.status_code == 200
        return re.findall(r'data-row="\S+ (\w+)"', page.text)


def browser_of(gateway: Gateway) -> Browser:
    user = User.objects.create_user(f"{secrets.token_hex(6)}@svc.example", "correct horse battery")
    Membership.objects.create(user=user, organization=gateway.organization)
    client = Client()
    client.force_login(user)
    return Browser(gateway, user, client)


@pytest.fixture
def browser(gateway: Gateway) -> Browser:
    return browser_of(gateway)


def test_a_request_is_told_as_it_ends(browser: Browser) -> None:
    with browser.watch() as socket:
        asked = browser.gateway.chat("say: hello").headers["x-request-id"]
        socket.recv(SOON)

    assert browser.listed() == [asked]


def test_a_message_that_is_lost_costs_seconds(browser: Browser) -> None:
    """No process announces this row, as when Redis drops a message: a channel that is full, or away."""
    with browser.watch() as socket:
        lost = receipt(organization_id=str(browser.gateway.organization.pk))
        rows.insert([lost], datetime.now(UTC))
        socket.recv(CHECK_SECONDS + SOON)

    assert browser.listed() == [lost.request_id]


def test_speech_and_chats_are_told_apart(browser: Browser) -> None:
    with browser.watch("speech") as socket:
        browser.gateway.chat("say: hello")
        with pytest.raises(TimeoutError):
            socket.recv(3)


def test_other_organizations_learn_nothing(browser: Browser) -> None:
    foreign = Organization.objects.create(name=f"foreign {secrets.token_hex(4)}")
    member = User.objects.create_user(f"{secrets.token_hex(6)}@svc.example")
    Membership.objects.create(user=member, organization=foreign)
    client = Client()
    client.force_login(member)
    stranger = Browser(browser.gateway, member, client)
    with browser.watch() as own, stranger.watch(organization=foreign.pk) as other:
        browser.gateway.chat("say: hello")
        own.recv(SOON)
        with pytest.raises(TimeoutError):
            other.recv(3)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": ""}, 401),
        ({"Cookie": "sessionid=nonsense"}, 401),
        ({"Origin": ""}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_only_a_page_of_the_console_may_watch(
    browser: Browser, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused, browser.watch(**headers):
        pass

    assert refused.value.response.status_code == status


def test_no_other_organization_can_be_named(browser: Browser) -> None:
    foreign = Organization.objects.create(name=f"foreign {secrets.token_hex(4)}")

    with pytest.raises(InvalidStatus) as refused, browser.watch(organization=foreign.pk):
        pass

    assert refused.value.response.status_code == 401


def test_a_message_ends_the_socket(browser: Browser) -> None:
    with browser.watch() as socket:
        socket.send("hello")
        assert json.loads(socket.recv(SOON))["type"] == "error"
        with pytest.raises(ConnectionClosed):
            socket.recv(SOON)
        assert socket.close_code == 4400


def test_messages_are_at_least_a_second_apart(browser: Browser) -> None:
    with browser.watch() as socket:
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


def test_a_removed_member_and_a_logged_out_one_stop_watching(gateway: Gateway) -> None:
    removed, left = browser_of(gateway), browser_of(gateway)
    with removed.watch() as first, left.watch() as second:
        Membership.objects.filter(user=removed.user).delete()
        left.client.logout()
        for socket in (first, second):
            deadline = time.monotonic() + 60
            with suppress(ConnectionClosed):
                while time.monotonic() < deadline:
                    socket.recv(2 * CHECK_SECONDS)
            assert socket.close_code == 4401


def test_pages_beyond_the_share_are_refused(
    browser: Browser, start_gateway: Callable[..., Gateway]
) -> None:
    small = Browser(start_gateway(SVC_MAX_WATCHERS="4"), browser.user, browser.client)
    with small.watch(), pytest.raises(InvalidStatus) as refused, small.watch():
        pass

    assert refused.value.response.status_code == 503


@pytest.mark.redis
def test_a_channel_layer_without_messages_does_not_fail(
    start_gateway: Callable[..., Gateway],
) -> None:
    gateway = start_gateway(REDIS_URL=f"{REDIS_URL}/9")

    time.sleep(8)  # the layer's blocking reads and redis-py's own timeout are 5 s

    assert "channel layer failed" not in gateway.command.log.read_text()


@pytest.mark.redis
def test_rows_of_another_process_are_told(
    browser: Browser, start_gateway: Callable[..., Gateway]
) -> None:
    """The other one answers a request, and dies in the middle of a second one."""
    here, there = (start_gateway(REDIS_URL=f"{REDIS_URL}/9") for _ in range(2))
    watching = Browser(here, browser.user, browser.client)
    with watching.watch() as socket:
        asked = there.chat("say: hello").headers["x-request-id"]
        # The first announcement may come after the row.
        socket.recv(2 * CHECK_SECONDS)
        until(lambda: asked in watching.listed())

        asked = there.chat("say: hello again").headers["x-request-id"]
        socket.recv(SOON)
        assert asked in watching.listed()

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
        assert interrupted in watching.listed()
