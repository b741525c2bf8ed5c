"""Floods of invented sessions, against a gateway at which a member works."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest
from django.http import HttpResponse
from django.test import Client
from websockets.sync.client import connect

from accounts.login.throttle import remember_device
from accounts.models import Membership, User
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until
from usage.console.live.consumer import CHECK_SECONDS

AT_ONCE = 300
TOKEN = "a" * 32
"""A CSRF token is the client's own to make up, in the cookie and in the header."""


def headers(gateway: Gateway, session: str) -> dict[str, str]:
    return {
        "host": f"127.0.0.1:{gateway.port}",
        "origin": gateway.url,
        "cookie": f"sessionid={session}; csrftoken={TOKEN}",
        "x-csrftoken": TOKEN,
    }


def session_of(gateway: Gateway) -> str:
    """A new session of a new member."""
    user = User.objects.create_user(f"{secrets.token_hex(6)}@svc.example", "correct horse battery")
    Membership.objects.create(user=user, organization=gateway.organization)
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def chat(gateway: Gateway, session: str, address: str = "127.0.0.1") -> httpx2.Response:
    """Use the playground, from an address of the loopback network."""
    body = {
        "model": gateway.models["running"],
        "messages": [{"role": "user", "content": "say: hello"}],
    }
    transport = httpx2.HTTPTransport(local_address=address, verify=NO_TLS)
    with httpx2.Client(transport=transport, timeout=60) as client:
        return client.post(
            f"{gateway.url}/console/playground/chat",
            json=body,
            headers=headers(gateway, session),
        )


@contextmanager
def flood(gateway: Gateway) -> Iterator[Counter[int]]:
    """Send ``AT_ONCE`` requests with invented sessions at any moment; yield the statuses so far."""
    statuses: Counter[int] = Counter()
    ending = threading.Event()

    async def ask() -> None:
        while not ending.is_set():
            lines = headers(gateway, secrets.token_hex(16)) | {"content-length": "0"}
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(f"POST /console/playground/chat HTTP/1.1\r\n{head}\r\n".encode())
                statuses[int((await reader.readline()).split()[1])] += 1
                writer.close()
            except OSError:
                await asyncio.sleep(0.01)

    async def ask_all() -> None:
        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))

    thread = threading.Thread(target=lambda: asyncio.run(ask_all()))
    thread.start()
    try:
        until(lambda: statuses.total() >= AT_ONCE)
        yield statuses
    finally:
        ending.set()
        thread.join()


@pytest.mark.long
def test_members_go_on_beside_hundreds_of_invented_sessions(gateway: Gateway) -> None:
    """Three kinds of members have their turn.

    A session that was valid a moment ago, also from the network of the flood; a browser that logged in
    before, of which the worker never saw the session, from there too; and a new session from elsewhere.
    """
    session = session_of(gateway)
    assert chat(gateway, session).status_code == 200
    response = HttpResponse()
    remember_device(response, "ann@svc.example")
    device = f"; device={response.cookies['device'].value}"
    sessions = [session_of(gateway) for _ in range(20)]
    sent = headers(gateway, session)
    live = f"ws://127.0.0.1:{gateway.port}/console/requests/live"
    with connect(
        f"{live}?organization={gateway.organization.pk}",
        additional_headers={name: sent[name] for name in ("origin", "cookie")},
        compression=None,
    ) as socket:
        assert json.loads(socket.recv(60)) == {"type": "ended"}
        with flood(gateway) as strangers:
            checked = time.monotonic() + CHECK_SECONDS + 5
            browsers = [chat(gateway, each + device) for each in sessions[:10]]
            elsewhere = [chat(gateway, each, "127.0.0.2") for each in sessions[10:]]
            answers = [*browsers, *elsewhere]
            for _ in answers:
                assert json.loads(socket.recv(60)) == {"type": "ended"}
            while time.monotonic() < checked or len(answers) <= 25:
                answers.append(chat(gateway, session))
                # Raises once the socket is closed; its session is checked in between.
                assert json.loads(socket.recv(60)) == {"type": "ended"}

    assert {each.status_code for each in answers} == {200}
    assert set(strangers) <= {401, 503}


def test_an_invented_session_is_refused_before_its_body_arrives(gateway: Gateway) -> None:
    lines = headers(gateway, secrets.token_hex(16)) | {"content-length": "900"}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with RawClient(gateway) as client:
        client.send(f"POST /console/playground/chat HTTP/1.1\r\n{head}\r\n".encode())
        status, _, _ = client.answer()

    assert status == 401
