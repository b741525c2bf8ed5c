"""The life of keys against a model: what each key gives access to, on three endpoints of a live gateway."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts.keys.keys import NewKey, NotRotatable, mint, revoke, rotate
from accounts.models import Organization, Scope
from core import clock
from tests.support.live import Gateway, fetch
from tests.support.until import until

EDGE = 0.25
"""Seconds around an expiry in which either answer is right, because a request takes time itself."""

OVERLAP = timedelta(seconds=1.5)


@dataclass
class Known:
    """A key in the model; times are in seconds on the wall clock."""

    new: NewKey
    scope: Scope
    ends: float | None = None
    revoked: bool = False

    def works(self, now: float) -> bool:
        return not self.revoked and (self.ends is None or now < self.ends)


class Keys(RuleBasedStateMachine):
    """One organization with any number of keys, and all changes of keys in any order."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self.gateway = gateway
        self.keys: list[Known] = []
        self.open = True

    @initialize()
    def found(self) -> None:
        self.organization = Organization.objects.create(
            name=f"keys {uuid.uuid4()}", requests_per_minute=None, tokens_per_minute=None
        )
        self.create(Scope.INFERENCE, None)

    @rule(scope=st.sampled_from(Scope), seconds=st.none() | st.sampled_from([-1.0, 1.5]))
    def create(self, scope: Scope, seconds: float | None) -> None:
        ends = None if seconds is None else clock.now() + timedelta(seconds=seconds)
        new = mint(self.organization, scope, "fuzz", expires_at=ends)
        self.keys.append(Known(new, scope, None if ends is None else ends.timestamp()))
        self.ask(len(self.keys) - 1)

    @rule(choice=st.integers(0), overlap=st.booleans())
    def rotate(self, choice: int, overlap: bool) -> None:
        old = self.keys[choice % len(self.keys)]
        until = clock.now() + OVERLAP if overlap else None
        if old.revoked or old.ends is not None:
            with pytest.raises(NotRotatable):
                rotate(old.new.api_key, until)
            return
        new = rotate(old.new.api_key, until)
        old.ends = (until or clock.now()).timestamp()
        self.keys.append(Known(new, old.scope))
        self.ask(self.keys.index(old))
        self.ask(len(self.keys) - 1)

    @rule(choice=st.integers(0))
    def revoke(self, choice: int) -> None:
        key = self.keys[choice % len(self.keys)]
        revoke(key.new.api_key)
        key.revoked = True
        self.ask(choice)

    @rule()
    def disable_or_enable(self) -> None:
        self.open = not self.open
        self.organization.disabled_at = None if self.open else clock.now()
        self.organization.save(update_fields=["disabled_at"])
        self.ask(0)

    @precondition(lambda self: any(key.ends for key in self.keys))
    @rule()
    def wait_for_an_end(self) -> None:
        ends = [key.ends - time.time() for key in self.keys if key.ends is not None]
        time.sleep(max([0.0, *(each for each in ends if each < 2)]) + EDGE)

    @rule(choice=st.integers(0))
    def ask(self, choice: int) -> None:
        """Check each endpoint against the model, which every process soon follows."""
        key = self.keys[choice % len(self.keys)]
        if key.ends is not None and abs(key.ends - time.time()) < EDGE:
            return
        until(lambda: self.is_as_told(key))

    def is_as_told(self, key: Known) -> bool:
        before = self.open and key.works(time.time())
        base = self.gateway.base_url
        voices = f"http://127.0.0.1:{self.gateway.speech_port}/v1/models"
        doors = (f"{base}/models", f"{base}/usage", voices)
        found = [opens(door, key.new.secret) for door in doors]
        if before != (self.open and key.works(time.time())):
            return False
        return found == [
            before and key.scope in {Scope.INFERENCE, Scope.READ},
            before and key.scope is Scope.READ,
            before and key.scope is Scope.SPEECH,
        ]


def opens(url: str, secret: str) -> bool:
    status = fetch(url, key=secret).status_code
    assert status in {200, 401}
    return status == 200


def test_every_key_gives_access_as_the_model_says(gateway: Gateway) -> None:
    run_state_machine_as_test(
        # Only called, whatever the types say (hypothesis, Stateful testing).
        cast("type[RuleBasedStateMachine]", lambda: Keys(gateway)),
        settings=settings(
            max_examples=6,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
