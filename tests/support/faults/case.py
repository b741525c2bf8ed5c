"""One fault: its model, its requests, and the check of all books when it is over."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from inference.models import Backend
from tests.support.builders import catalog_rows
from tests.support.faults.oracle import TOKEN_LIMIT, assert_books_agree, assert_limits_came_back
from tests.support.faults.seen import Seen, ask
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.model_servers.scripted import ScriptedServer
from usage.models import UsageRow

SMALL_CAP = 1000
"""How many tokens each of many concurrent requests reserves."""


PATIENCE = 0.4
"""Timeout of the backends of these tests for pauses, in seconds."""


_models: dict[tuple[str, bool], str] = {}


def publish_single(gateway: Gateway, base_url: str, *, running: bool) -> str:
    """The identifier of a model with one backend, one slot and short timeouts.

    Published once for each address: the tests break the connection, not the catalog. ``running``:
    the backend reports usage with every chunk.
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


def patient(gateway: Gateway, server: ScriptedServer, **columns: Any) -> Backend:
    """A backend whose timeouts outlast the pauses of a script."""
    seconds = {"first_byte_seconds": 10, "idle_seconds": 10}
    return single(gateway, **{"base_url": server.base_url, **seconds, **columns})


def publish_on(gateway: Gateway, *backends: Backend) -> str:
    weights = catalog_rows.weights(f"test/faults-{uuid.uuid4()}", tokenizer="o200k")
    entry = publish(gateway, *backends, weights=weights, context_length=10 * TOKEN_LIMIT)
    return entry.identifier


@dataclass
class Case:
    """One fault: send requests while it lasts, then check everything when it is over."""

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
        """Send ``count`` requests, every other one streamed."""
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
        """Assert that all books agree, that limits and slot are free again, and the books still agree.

        Return the rows, ``count`` of them, without the last, which is that of the probe.
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
