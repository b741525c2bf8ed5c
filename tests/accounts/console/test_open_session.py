"""The caller of a console's WebSocket, looked up again while it is open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accounts.console import sessions as module
from accounts.console.sessions import OpenSession, SessionEnded, Sessions
from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.models import Scope
from core.errors import ApiError, InternalError, ServerOverloaded
from core.ids import NIL_UUID


def principal(characters: int) -> Principal:
    unlimited = RateLimits(None, None)
    limits = SpeechLimits(None, characters)
    return Principal("org", str(NIL_UUID), Scope.SPEECH, "standard", unlimited, unlimited, limits)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(module, "time", own)
    return own


def answer(monkeypatch: pytest.MonkeyPatch, *found: Principal | ApiError) -> list[Any]:
    """Give ``found``, one after the other; return those that were not asked for yet."""
    left = list(found)

    async def principal_of(self: Sessions, scope: dict[str, Any], wanted: Scope) -> Principal:
        each = left.pop(0)
        if isinstance(each, ApiError):
            raise each
        return each

    monkeypatch.setattr(Sessions, "principal_of", principal_of)
    return left


async def test_the_session_is_looked_up_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    left = answer(monkeypatch, principal(1), principal(2), SessionEnded())
    check = OpenSession({}, Scope.SPEECH)

    assert await check() == principal(1)
    clock.now += 2.9
    assert await check() == principal(1)
    assert len(left) == 2
    clock.now += 0.2
    assert await check() == principal(2)
    clock.now += 3.1
    with pytest.raises(SessionEnded):
        await check()


async def test_a_session_whose_lookups_get_no_turn_ends_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    answer(monkeypatch, principal(1), *[ServerOverloaded()] * 20)
    check = OpenSession({}, Scope.SPEECH)
    assert await check() == principal(1)

    for _ in range(15):
        clock.now += 4.0
        assert await check() == principal(1)
    clock.now += 4.0
    with pytest.raises(ServerOverloaded):
        await check()


@pytest.mark.parametrize("failure", [InternalError(), ServerOverloaded()])
async def test_while_the_database_is_away_the_last_caller_stays(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, failure: ApiError
) -> None:
    answer(monkeypatch, principal(1), failure, failure, SessionEnded())
    check = OpenSession({}, Scope.SPEECH)
    assert await check() == principal(1)

    for _ in range(2):
        clock.now += 3.1
        assert await check() == principal(1)
    clock.now += 3.1
    with pytest.raises(SessionEnded):
        await check()


async def test_it_ends_when_the_person_picks_another_organization(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    answer(monkeypatch, principal(1), replace(principal(1), organization_id="another"))
    check = OpenSession({}, Scope.SPEECH)
    assert await check() == principal(1)
    clock.now += 3.1

    with pytest.raises(SessionEnded):
        await check()


async def test_at_the_upgrade_a_failure_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    answer(monkeypatch, InternalError())
    with pytest.raises(InternalError):
        await OpenSession({}, Scope.SPEECH)()
