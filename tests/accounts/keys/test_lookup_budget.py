"""The budget of look-ups of unknown keys, and their order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.changes import ChangeWatcher
from accounts.keys import keys
from accounts.keys.keyring import Keyring
from accounts.keys.lookup_budget import OF_ONE_NETWORK_AT_ONCE, UnknownKeyBudget
from accounts.keys.lookups import MOST_WAITING, MOST_WAITING_OF_ONE, Lookups
from accounts.models import ApiKey, Organization, Scope
from svc_project.lib import clock
from svc_project.lib.errors import InvalidCredential, ServerOverloaded
from tests.accounts.keys.test_keyring import ALL, eventually, invented

HOUR = 3600.0


def taken(budget: UnknownKeyBudget, network: str, most: int = 1000) -> int:
    """How many look-ups in a row ``network`` gets."""
    return next((number for number in range(most) if not budget.take(network)), most)


def test_one_network_cannot_take_the_budget_of_others() -> None:
    now = 1000.0
    budget = UnknownKeyBudget(clock=lambda: now)

    assert taken(budget, "198.51.100.7") == OF_ONE_NETWORK_AT_ONCE
    assert taken(budget, "203.0.113.9") == 50
    now += 1.0
    assert taken(budget, "198.51.100.7") == 20


def test_look_ups_are_reserved_for_networks_without_invalid_keys() -> None:
    budget = UnknownKeyBudget(clock=lambda: 1000.0)
    attackers = [f"198.51.100.{number}" for number in range(4)]
    for network in attackers[:3]:
        taken(budget, network)
    # The common bucket is empty, and the third attacker took some of the reserved one.
    assert [taken(budget, network) for network in attackers[:3]] == [0, 0, 0]

    assert budget.take("203.0.113.9")
    assert not budget.take("")


def test_keys_that_are_found_cost_nothing() -> None:
    budget = UnknownKeyBudget(clock=lambda: 1000.0)
    for _ in range(500):
        assert budget.take("203.0.113.9")
        budget.refund("203.0.113.9")


def test_threads_that_wait_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.keys.lookup_budget.OF_ONE_NETWORK_PER_SECOND", 0)
    monkeypatch.setattr("accounts.keys.lookup_budget.LONGEST_WAIT_SECONDS", HOUR)
    budget = UnknownKeyBudget()
    taken(budget, "198.51.100.7")
    refused = threading.Semaphore(0)
    answers: list[str] = []

    def wait() -> None:
        try:
            budget.wait_and_take("198.51.100.7")
            answers.append("let in")
        except ServerOverloaded:
            answers.append("refused")
            refused.release()

    with ThreadPoolExecutor(9) as threads:
        for _ in range(9):
            threads.submit(wait)
        for _ in range(5):
            assert refused.acquire(timeout=30)
        began = time.monotonic()
        budget.wait_and_take("203.0.113.9")
        assert time.monotonic() - began < 5
        for _ in range(4):
            budget.refund("198.51.100.7")
    assert sorted(answers) == ["let in"] * 4 + ["refused"] * 5


class Asked:
    """A database that answers on demand, and records the order of its look-ups."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.open = threading.Event()

    def look_up(self, secrets: Sequence[str]) -> Mapping[str, bool]:
        self.open.wait(30)
        self.order += secrets
        return dict.fromkeys(secrets, False)


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def lookups(asked: Asked) -> Lookups[bool]:
    return Lookups(asked.look_up, bool, UnknownKeyBudget())


def ask(lookups: Lookups[bool], network: str, count: int) -> list[Future[bool]]:
    return [lookups.submit(f"{network} {number}", network) for number in range(count)]


def test_networks_take_turns(lookups: Lookups[bool], asked: Asked) -> None:
    first = ask(lookups, "a", 1)
    eventually(lambda: lookups._began is not None)
    answers = ask(lookups, "b", 30) + ask(lookups, "c", 2) + ask(lookups, "d", 1)
    asked.open.set()

    assert not any(answer.result(30) for answer in first + answers)
    assert asked.order[:6] == ["a 0", "b 0", "c 0", "d 0", "b 1", "c 1"]
    lookups.close()


def test_queues_are_bounded_for_one_network_and_for_all(
    lookups: Lookups[bool], asked: Asked
) -> None:
    ask(lookups, "first", 1)
    eventually(lambda: lookups._began is not None)
    waiting = ask(lookups, "a", MOST_WAITING_OF_ONE)
    with pytest.raises(ServerOverloaded):
        lookups.submit("one more", "a")
    left = MOST_WAITING - MOST_WAITING_OF_ONE
    for network in range(5):
        ask(lookups, f"b{network}", left // 5)

    # The queues are full: the longest one loses its last to a network with fewer.
    fresh = lookups.submit("fresh", "203.0.113.9")
    lost = [answer for answer in waiting if answer.done()]
    assert lost == waiting[-1:]
    with pytest.raises(ServerOverloaded):
        lost[0].result(0)
    asked.open.set()
    assert fresh.result(30) is False
    lookups.close()


@pytest.fixture
def used(organization: Organization) -> keys.NewKey:
    """A key that was used before this process began."""
    made = keys.mint(organization, Scope.READ)
    ApiKey.objects.filter(pk=made.api_key.pk).update(last_used_at=clock.now() - timedelta(days=3))
    return made


def test_a_used_key_is_cached_from_the_start(keyring: Keyring, used: keys.NewKey) -> None:
    keyring.warm()

    with CaptureQueriesContext(connection) as queries:
        principal = keyring.authenticate_sync(f"Bearer {used.secret}", ALL)
        assert keyring.authenticate_sync(f"Bearer {used.secret}", ALL) is principal
    assert len(queries) == 0
    assert principal.api_key_id == str(used.api_key.pk)


def test_a_used_key_that_is_revoked_after_the_start_is_refused(
    keyring: Keyring, watcher: ChangeWatcher, used: keys.NewKey
) -> None:
    watcher.poll()
    keyring.warm()
    keys.revoke(used.api_key)
    watcher.poll()

    with pytest.raises(InvalidCredential):
        keyring.authenticate_sync(f"Bearer {used.secret}", ALL)


def test_a_key_that_was_never_used_or_is_revoked_is_not_cached(
    keyring: Keyring, organization: Organization, used: keys.NewKey
) -> None:
    fresh = keys.mint(organization, Scope.READ)
    keys.revoke(used.api_key)
    keyring.warm()

    with CaptureQueriesContext(connection) as queries:
        assert keyring.authenticate_sync(f"Bearer {fresh.secret}", ALL)
        with pytest.raises(InvalidCredential):
            keyring.authenticate_sync(f"Bearer {used.secret}", ALL)
    assert len(queries) == 2


def test_a_used_key_spends_no_budget_when_changes_have_invalidated_it(
    keyring: Keyring, used: keys.NewKey
) -> None:
    keyring.warm()
    keyring.invalidate()
    while keyring._budget.take("198.51.100.7"):
        pass

    assert keyring.authenticate_sync(f"Bearer {used.secret}", ALL, from_("198.51.100.7"))


def from_(address: str) -> dict[str, Any]:
    """The part of an ASGI scope with the client address."""
    return {"client": (address, 50_000), "headers": []}


@pytest.fixture
def seen_by_all(transactional_db: None, organization: Organization) -> str:
    """The secret of a key that every thread can see."""
    return keys.mint(organization, Scope.READ).secret


@pytest.mark.django_db(transaction=True)
async def test_a_flood_from_one_address_delays_no_key_of_another(
    keyring: Keyring, seen_by_all: str
) -> None:
    async def invent(number: int) -> None:
        with pytest.raises((InvalidCredential, ServerOverloaded)):
            # Addresses of one /64 are one network.
            await keyring.authenticate(
                f"Bearer {invented(body=f'{number:030d}')}", ALL, from_(f"2001:db8::{number:x}")
            )

    flood = [asyncio.create_task(invent(number)) for number in range(1, 400)]
    await asyncio.sleep(0)
    began = time.monotonic()
    assert await keyring.authenticate(f"Bearer {seen_by_all}", ALL, from_("2001:db8:0:1::1"))
    # Keys that wait for the flood's own budget take five seconds and more.
    assert time.monotonic() - began < 3
    assert not all(each.done() for each in flood)
    for each in flood:
        each.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
