"""A clock that tests set, and what is learnt by it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from inference.backends.usage_dialects import UsageDialects


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dialects(clock: Clock) -> UsageDialects:
    return UsageDialects(clock)
