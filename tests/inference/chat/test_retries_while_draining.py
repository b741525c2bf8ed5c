"""A retry goes by the catalog of now, not by that of the moment when the request began."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from accounts.changes import ChangeWatcher
from core.backends.quarantine import Quarantine
from inference.backends.client import BackendClient
from inference.backends.health_checks import HealthChecks
from inference.backends.pool import BackendPool
from inference.backends.prompts import Prompt
from inference.backends.usage_dialects import UsageDialects
from inference.catalog.catalog import Catalog
from inference.catalog.snapshot import CatalogSnapshot, DeploymentRef
from inference.chat.exchange import Egress, Exchange
from inference.chat.meter import Meter
from inference.wire import ChatRequest
from tests.fuzz.test_backend_streams import IDENTITY
from tests.inference.backends.test_connections import BACKEND
from tests.inference.backends.test_exchange_bounds import Reader
from tests.inference.chat.test_admission import published
from tests.support.model_servers.scripted import Script, ScriptedServer, body, scripted_server


@pytest.fixture
def servers() -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    """One that is full, and one that answers."""
    with ExitStack() as stack:
        full, good = (stack.enter_context(scripted_server()) for _ in range(2))
        busy = Script([body(b"{}", 503)])
        full.say(busy, busy)
        yield full, good


@pytest.mark.parametrize("draining", [False, True])
async def test_a_retry_passes_over_a_deployment_that_began_to_drain(
    servers: tuple[ScriptedServer, ScriptedServer], draining: bool
) -> None:
    full, good = servers
    first, second = (
        DeploymentRef(replace(BACKEND, id=f"b{at}", base_url=each.base_url), "demo")
        for at, each in enumerate(servers)
    )
    model = replace(published(), deployments=(first, second))
    # Read again since the request began: every deployment is another object.
    serving = (replace(first),) if draining else (replace(first), replace(second))
    catalog = Catalog(ChangeWatcher())
    catalog.snapshot = CatalogSnapshot({model.id: replace(model, deployments=serving)})
    client, pool = BackendClient(), BackendPool()
    egress = Egress(
        pool, client, Quarantine(0, 0.0), HealthChecks(pool, client), UsageDialects(), catalog
    )
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    exchange = Exchange(
        ChatRequest.from_fields(asked),
        model,
        await pool.lease((first,), Prompt("organization", 100)),
        Meter(IDENTITY, time.perf_counter()),
        egress,
        note_progress=lambda _progress: None,
    )

    ended = await exchange.run(Reader(), 1)
    await client.close()

    assert (len(full.requests()), len(good.requests())) == (1, 0 if draining else 1)
    assert (None if ended.failure is None else ended.failure.code) == (
        "server_overloaded" if draining else None
    )
    assert not any(view.running for view in pool.views([first.backend, second.backend], []))
