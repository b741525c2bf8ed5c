"""Whose turn it is to have a session looked up: strangers wait for strangers only."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse

from accounts.console import session_lookups
from accounts.console.session_lookups import SessionLookups
from accounts.keys.callers import Caller, remember_session
from accounts.login.throttle import remember_device
from core.errors import ServerOverloaded
from tests.support.until import until_async

SET = threading.Event()
SET.set()


def scope(address: str = "192.0.2.1", **headers: str) -> dict[str, Any]:
    return {
        "client": (address, 1234),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


def invented(address: str = "192.0.2.1") -> dict[str, Any]:
    return scope(address, cookie=f"sessionid={uuid.uuid4().hex}")


def valid(organization_id: str) -> dict[str, Any]:
    session = uuid.uuid4().hex
    remember_session(session, organization_id)
    return scope(cookie=f"other=1; sessionid={session}")


@pytest.fixture
def blocked() -> Iterator[threading.Event]:
    """Until it is set, look-ups that wait for it do not end."""
    event = threading.Event()
    yield event
    event.set()
    session_lookups.close()


def ask(caller: dict[str, Any], event: threading.Event) -> asyncio.Task[bool]:
    return asyncio.ensure_future(session_lookups.run(caller, lambda: event.wait(60)))


async def assert_refused(waiting: list[asyncio.Task[bool]], count: int) -> None:
    """So many are refused while the others still wait."""
    await until_async(lambda: sum(each.done() for each in waiting) >= count)
    refusals = [each.exception() for each in waiting if each.done()]
    assert len(refusals) == count
    assert all(isinstance(each, ServerOverloaded) for each in refusals)


async def test_strangers_have_a_part_and_keep_no_known_caller_waiting(
    blocked: threading.Event,
) -> None:
    flood = [ask(invented(), blocked) for _ in range(300)]
    await assert_refused(flood, 300 - 32 - 1)

    assert await asyncio.wait_for(ask(valid("1"), SET), 60)

    # A stranger from elsewhere has the next turn.
    elsewhere = ask(invented("198.51.100.7"), SET)
    blocked.set()
    assert await asyncio.wait_for(elsewhere, 60)
    await asyncio.gather(*flood, return_exceptions=True)


async def test_a_known_caller_has_half_of_the_threads(blocked: threading.Event) -> None:
    session = valid("2")
    own = [ask(session, blocked) for _ in range(100)]
    await assert_refused(own, 100 - 32 - 1)

    assert await asyncio.wait_for(ask(valid("3"), SET), 60)
    blocked.set()
    await asyncio.gather(*own, return_exceptions=True)


def test_a_browser_that_logged_in_before_is_known_and_an_invented_one_is_not() -> None:
    response = HttpResponse()
    remember_device(response, "Ann@acme.example")
    device = response.cookies["device"].value
    stranger = Caller("192.0.2.1", is_known=False)

    first = session_lookups._caller_of(scope(cookie=f"sessionid=new; device={device}"))
    assert first.is_known
    remember_device(response, "ann@acme.example")
    again = f"sessionid=other; device={response.cookies['device'].value}"
    assert session_lookups._caller_of(scope(cookie=again)) == first, "one share for an account"
    forged = device[:-1] + ("a" if device[-1] != "a" else "b")
    for cookie in (f"sessionid=new; device={forged}", "sessionid=new; device=", "sessionid=new"):
        assert session_lookups._caller_of(scope(cookie=cookie)) == stranger


def test_a_key_beside_the_session_changes_nothing() -> None:
    known = valid("4")
    known["headers"].append((b"authorization", b"Bearer wrong"))
    assert session_lookups._caller_of(known) == Caller("organization:4", is_known=True)


async def test_a_look_up_that_fails_gives_its_place_back() -> None:
    lookups = SessionLookups("test", 1)

    def fail() -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await lookups.run("a", fail)
    await asyncio.to_thread(lookups.close)
