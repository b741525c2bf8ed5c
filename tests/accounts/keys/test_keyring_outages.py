"""The key ring of a process that watches changes, while its database is away, slow or asked by many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from pytest_django import Settings

from accounts.changes import KEYS, ChangeWatcher
from accounts.keys import keys
from accounts.keys.keyring import Keyring
from accounts.keys.keys import NewKey
from accounts.models import Organization, Scope
from core.database.threads import run_once
from core.errors import InternalError, InvalidCredential
from tests.accounts.keys.test_keyring import ALL, invented, refused
from tests.support.servers.database_outage import database_outage
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until, until_async

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def known(keyring: Keyring, watcher: ChangeWatcher, minted: list[NewKey]) -> Iterator[str]:
    """The header of a key that the running watcher has loaded."""
    watcher.start()
    until(lambda: watcher.is_fresh(KEYS, 1))
    yield f"Bearer {minted[0].secret}"
    watcher.stop()


class Hanging:
    """A watcher whose polls do not end before ``answers`` is set."""

    def __init__(self, watcher: ChangeWatcher, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = threading.Event()
        self.polls = 0
        poll = watcher.poll

        def hang() -> None:
            self.polls += 1
            self.answers.wait(60)
            poll()

        monkeypatch.setattr(watcher, "poll", hang)


@pytest.fixture
def hanging(
    watcher: ChangeWatcher, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Hanging]]:
    started: list[Hanging] = []

    def start() -> Hanging:
        started.append(Hanging(watcher, monkeypatch))
        until(lambda: started[0].polls > 0)
        return started[0]

    yield start
    for each in started:
        each.answers.set()
    watcher.stop()


def test_without_a_watcher_a_key_is_not_known_during_an_outage(
    keyring: Keyring, organization: Organization
) -> None:
    unseen = f"Bearer {keys.mint(organization, Scope.READ).secret}"
    connection.close()
    with database_outage():
        with pytest.raises(InternalError):
            keyring.authenticate_sync(unseen, ALL)
        with pytest.raises(InvalidCredential):
            keyring.authenticate_sync("Bearer mistyped", ALL)
    connection.close()
    assert keyring.authenticate_sync(unseen, ALL)


async def test_during_an_outage_known_keys_work_at_once_and_unknown_ones_get_a_server_error(
    keyring: Keyring, watcher: ChangeWatcher, known: str, settings: Settings
) -> None:
    await asyncio.to_thread(watcher.stop)
    with database_outage():
        watcher.start()
        await asyncio.to_thread(until, lambda: watcher.is_failing)
        await asyncio.to_thread(until, lambda: not watcher.is_fresh(KEYS, 2.5))
        for _ in range(100):
            assert await keyring.authenticate(known, ALL)
        assert await run_once(lambda: keyring.authenticate_sync(known, ALL))
        with pytest.raises(InternalError):
            await keyring.authenticate(f"Bearer {invented()}", ALL)
        with pytest.raises(InvalidCredential):
            await keyring.authenticate("Bearer mistyped", ALL)
        with pytest.raises(InvalidCredential):
            await keyring.authenticate(known, frozenset({Scope.SPEECH}))
        settings.SVC_KEY_OUTAGE_SECONDS = 0.0
        with pytest.raises(InternalError):
            await keyring.authenticate(known, ALL)
    until(lambda: not watcher.is_failing)
    assert await keyring.authenticate(known, ALL)


async def test_a_database_that_hangs_delays_known_keys_once(
    keyring: Keyring, watcher: ChangeWatcher, known: str, hanging: Callable[[], Hanging]
) -> None:
    principal = await keyring.authenticate(known, ALL)
    hung = hanging()
    await asyncio.to_thread(until, lambda: not watcher.is_fresh(KEYS, 2.5))
    assert await keyring.authenticate(known, ALL) is principal
    assert watcher.is_failing, "from now on nobody waits"
    for _ in range(100):
        assert await keyring.authenticate(known, ALL) is principal
    hung.answers.set()
    await asyncio.to_thread(until, lambda: not watcher.is_failing)


async def test_a_thousand_callers_with_new_keys_share_a_look_at_the_stamp(
    keyring: Keyring,
    watcher: ChangeWatcher,
    known: str,
    hanging: Callable[[], Hanging],
    organization: Organization,
) -> None:
    hung = hanging()
    fresh = [await run_once(lambda: keys.mint(organization, Scope.READ)) for _ in range(10)]
    callers = [
        asyncio.create_task(keyring.authenticate(f"Bearer {fresh[i % 10].secret}", ALL))
        for i in range(1000)
    ]
    strangers = [
        asyncio.create_task(keyring.authenticate(f"Bearer {invented(body=f'{i:030d}')}", ALL))
        for i in range(1000)
    ]
    await asyncio.sleep(0)
    hung.answers.set()
    principals = await asyncio.gather(*callers)
    refusals = await asyncio.gather(*strangers, return_exceptions=True)
    assert {p.api_key_id for p in principals} == {str(m.api_key.pk) for m in fresh}
    assert {type(each) for each in refusals} == {InvalidCredential}
    # The one that hung, the one that they shared, and the regular ones meanwhile.
    assert hung.polls <= 6


async def test_a_cancelled_caller_does_not_cancel_the_look_of_others(
    keyring: Keyring, known: str, organization: Organization
) -> None:
    new = await run_once(lambda: keys.mint(organization, Scope.READ))
    header = f"Bearer {new.secret}"
    callers = [asyncio.create_task(keyring.authenticate(header, ALL)) for _ in range(3)]
    await asyncio.sleep(0)
    callers[0].cancel()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1] == answers[2] == await keyring.authenticate(header, ALL)


def test_invented_keys_leave_nothing_in_memory(keyring: Keyring, known: str) -> None:
    held = dict(keyring._keys.snapshot)

    def tried(number: int) -> bool:
        try:
            return refused(keyring, invented(body=f"{number:030d}"))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(tried, range(40)))
    assert keyring._keys.snapshot == held


@pytest.mark.postgresql
async def test_a_connection_that_died_silently_does_not_hide_a_revocation(
    keyring: Keyring, watcher: ChangeWatcher, minted: list[NewKey]
) -> None:
    """The watcher's connection drops all bytes, as behind a firewall that lost it; new ones work."""
    header = f"Bearer {minted[0].secret}"
    config = connections.settings["default"]
    kept = {name: config[name] for name in ("HOST", "PORT")}
    with FaultProxy(int(kept["PORT"] or 5432), kept["HOST"] or "127.0.0.1") as proxy:
        config.update(HOST="127.0.0.1", PORT=str(proxy.port))
        try:
            watcher.start()
            await asyncio.to_thread(until, lambda: watcher.is_fresh(KEYS, 1))
            assert await keyring.authenticate(header, ALL)
            proxy.forget_open()
            await run_once(lambda: keys.revoke(minted[0].api_key))

            async def is_refused() -> bool:
                try:
                    await keyring.authenticate(header, ALL)
                except InvalidCredential:
                    return True
                return False

            await until_async(is_refused)
        finally:
            config.update(kept)
            await asyncio.to_thread(watcher.stop)
