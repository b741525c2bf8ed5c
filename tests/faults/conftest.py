"""What every case starts from: an organization whose limit shows a reservation that was lost."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from inference.models import Backend
from tests.faults.oracle import TOKEN_LIMIT, assert_books_agree, assert_limits_came_back
from tests.faults.proxy import FaultProxy
from tests.faults.scripted import ScriptedServer, scripted_server
from tests.faults.views import Seen, ask
from tests.inference import making
from tests.live import Gateway, Simulator
from tests.live_catalog import backend, publish
from usage.models import UsageRow

SMALL_CAP = 1000
"""What each of many requests at once reserves."""
PATIENCE = 0.4
"""Seconds that the backends of these tests may be silent."""


@pytest.fixture
def gateway(gateway: Gateway) -> Gateway:
    """The live gateway; the organization has ``TOKEN_LIMIT`` tokens a minute."""
    organization = gateway.organization
    organization.tokens_per_minute = TOKEN_LIMIT
    organization.save()
    return gateway


@pytest.fixture(scope="session")
def proxy(simulator: Simulator) -> Iterator[FaultProxy]:
    """In front of the simulator; use ``broken`` in tests."""
    with FaultProxy(simulator.port) as running:
        yield running


@pytest.fixture
def broken(proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The way to the simulator, whole before and after."""
    proxy.heal()
    yield proxy
    proxy.heal()


@pytest.fixture(scope="session")
def scripted_backend() -> Iterator[ScriptedServer]:
    """Use ``scripted`` in tests."""
    with scripted_server() as server:
        yield server


@pytest.fixture
def scripted(scripted_backend: ScriptedServer) -> Iterator[ScriptedServer]:
    """A model server that says what the test wrote down; good answers before and after."""
    scripted_backend.heal()
    yield scripted_backend
    scripted_backend.heal()


_models: dict[tuple[str, bool], str] = {}


def publish_single(gateway: Gateway, base_url: str, *, running: bool) -> str:
    """The identifier of a model with one backend, one slot and little patience.

    Published once for each address: what is broken is the way, not the catalog. ``running``: the
    backend reports usage with every chunk.
    """
    key = (base_url, running)
    if key not in _models:
        _models[key] = publish_on(
            gateway, single(gateway, base_url=base_url, running_usage="vllm" if running else "none")
        )
    return _models[key]


def single(gateway: Gateway, **columns: Any) -> Backend:
    return backend(
        gateway,
        **{
            "max_concurrency": 1,
            "first_byte_seconds": PATIENCE,
            "idle_seconds": PATIENCE,
            **columns,
        },
    )


def publish_on(gateway: Gateway, *backends: Backend) -> str:
    weights = making.weights(f"test/faults-{uuid.uuid4()}", tokenizer="o200k")
    entry = publish(gateway, *backends, weights=weights, context_length=10 * TOKEN_LIMIT)
    return entry.identifier


@dataclass
class Case:
    """One fault: ask while it lasts, then check everything when it is over."""

    gateway: Gateway
    model: str
    logs: Sequence[Callable[[], list[dict[str, Any]]]]
    seen: list[Seen] = field(default_factory=list)

    def ask(self, text: str = "[[sim tokens=4]]", *, streamed: bool, **fields: Any) -> Seen:
        found = ask(self.gateway, self.model, text, streamed=streamed, **fields)
        self.seen.append(found)
        return found

    def ask_many(
        self, count: int, text: str = "[[sim tokens=4]]", *, at_once: int = 6
    ) -> list[Seen]:
        """``count`` requests, every other one streamed."""
        with ThreadPoolExecutor(at_once) as threads:
            found = list(
                threads.map(
                    lambda number: ask(
                        self.gateway,
                        self.model,
                        text,
                        streamed=number % 2 == 0,
                        max_completion_tokens=SMALL_CAP,
                    ),
                    range(count),
                )
            )
        self.seen += found
        return found

    def check(self, count: int | None = None) -> list[UsageRow]:
        """All books agree, the limits and the slot are free again, and the books still agree.

        Returns the rows, ``count`` of them, without that of the probe, which is the last.
        """
        rows = self.agree(count)
        self.seen.append(assert_limits_came_back(self.gateway, self.model))
        self.agree()
        return rows

    def agree(self, count: int | None = None) -> list[UsageRow]:
        return assert_books_agree(
            self.gateway,
            self.seen,
            lambda: [entry for read in self.logs for entry in read()],
            count,
        )


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streamed(request: pytest.FixtureRequest) -> bool:
    answer: bool = request.param
    return answer


@pytest.fixture(params=[True, False], ids=["running", "plain"])
def running(request: pytest.FixtureRequest) -> bool:
    answer: bool = request.param
    return answer
