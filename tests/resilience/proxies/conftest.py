"""A gateway that tells its surfaces by ``Host``, so that one connection of a proxy serves both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.resilience.proxies.attacks import INFERENCE_HOST, SPEECH_HOST
from tests.resilience.proxies.fronts import CASES, Front
from tests.support.gateways import Served, another_gateway
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount


@pytest.fixture(scope="module")
def behind(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with another_gateway(
        served,
        tmp_path_factory.mktemp("behind"),
        ALLOWED_HOSTS=f"127.0.0.1,{INFERENCE_HOST},{SPEECH_HOST}",
        SPEECH_HOSTS=SPEECH_HOST,
        SVC_PROXIES="1",
        # Nearly every attack is a refused request.
        SVC_REFUSED_REQUESTS_PER_MINUTE="1000000",
    ) as started:
        yield started


@pytest.fixture
def hidden(gateway: Gateway, behind: Served) -> Gateway:
    """The gateway behind the proxies, with an organization of the test's own."""
    return behind.serving(gateway)


@dataclass(frozen=True, slots=True)
class Opened:
    """A running proxy."""

    front: Front
    port: int


@pytest.fixture(scope="module", params=CASES, ids=str)
def opened(
    request: pytest.FixtureRequest, behind: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    """Each proxy in front of the gateway."""
    front: Front = request.param
    with front.start(tmp_path_factory.mktemp("front"), behind.port) as port:
        yield Opened(front, port)


@pytest.fixture
def attacker(hidden: Gateway) -> SpeechAccount:
    """An organization without limits, with a speech key."""
    account = speech_account(hidden)
    account.organization.requests_per_minute = None
    account.organization.tokens_per_minute = None
    account.organization.save()
    return account
