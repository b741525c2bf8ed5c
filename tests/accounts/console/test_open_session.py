"""The caller of a console's WebSocket, looked up again while it is open."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from accounts.console import sessions as module
from accounts.console.sessions import OpenSession, SessionEnded, Sessions
from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.models import Scope
from core.errors import ApiError, InternalError, ServerOverloaded
from core.ids import NIL_UUID
from tests.support.clocks import Clock


def principal(characters: int) -> Principal:
    unlimited = RateLimits(None, None)
    limits = SpeechLimits(None, characters)
    return Principal("org", str(NIL_UUID), Scope.SPEECH, "standard", unlimited, unlimited, limits)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=own))
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


FIRST, SECOND = principal(1), principal(2)
MOVED = replace(FIRST, organization_id="another")


@pytest.mark.parametrize(
    ("answers", "seconds", "callers"),
    [
        pytest.param(
            [FIRST, SECOND, SessionEnded()],
            [0.0, 2.9, 0.2, 3.1],
            [FIRST, FIRST, SECOND, SessionEnded],
            id="the session is looked up every three seconds",
        ),
        pytest.param(
            [FIRST, *[ServerOverloaded()] * 16],
            [0.0, *[4.0] * 16],
            [*[FIRST] * 16, ServerOverloaded],
            id="a session whose look-ups get no turn ends after a minute",
        ),
        *(
            pytest.param(
                [FIRST, failure, failure, SessionEnded()],
                [0.0, 3.1, 3.1, 3.1],
                [FIRST, FIRST, FIRST, SessionEnded],
                id=f"while look-ups end in {type(failure).__name__} the last caller stays",
            )
            for failure in (InternalError(), ServerOverloaded())
        ),
        pytest.param(
            [FIRST, MOVED],
            [0.0, 3.1],
            [FIRST, SessionEnded],
            id="it ends when the person picks another organization",
        ),
        pytest.param(
            [InternalError()], [0.0], [InternalError], id="at the upgrade a failure is a failure"
        ),
    ],
)
async def test_the_caller_of_an_open_session(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    answers: list[Principal | ApiError],
    seconds: list[float],
    callers: list[Principal | type[ApiError]],
) -> None:
    left = answer(monkeypatch, *answers)
    check = OpenSession({}, Scope.SPEECH)
    for passed, caller in zip(seconds, callers, strict=True):
        clock.now += passed
        if isinstance(caller, Principal):
            assert await check() == caller
        else:
            with pytest.raises(caller):
                await check()
    assert not left, "each look-up takes place"
