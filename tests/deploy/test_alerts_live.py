"""Alerts as a Prometheus raises them at a running gateway whose servers, processes and disk really fail.

The rules are those of ``deploy/`` with shorter times. ``test_alerts.py`` simulates every alert.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.deploy.test_monitoring import RULES, TOKEN
from tests.support.clients.conversation import limited
from tests.support.clients.raw_client import RawClient
from tests.support.gateways import Served
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.processes import workers_of
from tests.support.servers.prometheus import running_prometheus
from tests.support.servers.redis_store import proxy_to_redis, url_through
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.redis,
    pytest.mark.postgresql,
    pytest.mark.timeout(900),
]

SHORTER = {"15m": "1m", "5m": "20s", "1h": "1m"}
JOURNAL_BYTES = 100_000
"""The size above which no file of a worker grows: its metrics take less, a few hundred records take more."""


def shorter(directory: Path) -> Path:
    """The rules with shorter windows, which are pending for 2 seconds instead of minutes."""
    text = re.sub(r"(?m)^( +for:) \w+$", r"\1 2s", RULES.read_text())
    text = re.sub(r"(\[|offset )(15m|5m|1h)", lambda at: at[1] + SHORTER[at[2]], text)
    text = text.replace("(svc_poll_age_seconds) > 30", "(svc_poll_age_seconds) > 5")
    path = directory / "rules.yml"
    path.write_text(text)
    return path


class Watched:
    """A gateway that gets chats all the time, and the Prometheus that scrapes it."""

    def __init__(self, gateway: Gateway, directory: Path, stack: ExitStack) -> None:
        self.gateway = gateway
        self.models = ["running"]
        """The models that chats are sent to."""
        self._prometheus = stack.enter_context(
            running_prometheus(directory, gateway.port, TOKEN, shorter(directory))
        )
        self._stopping = threading.Event()
        for thread in [threading.Thread(target=self._send) for _ in range(3)]:
            thread.start()
            stack.callback(thread.join)
        stack.callback(self._stopping.set)

    @property
    def workers(self) -> set[int]:
        return workers_of(self.gateway.command.process.pid)

    def _send(self) -> None:
        while not self._stopping.wait(0.02):
            for model in list(self.models):
                with suppress(httpx2.TransportError):
                    self.gateway.chat(f"say: {time.time()}", model, timeout=10)

    def fires(self, *names: str) -> None:
        """Return when all these alerts fire."""

        def missing() -> set[str]:
            rules = self._prometheus.rules()
            return set(names) - {each["name"] for each in rules if each["state"] == "firing"}

        until(lambda: not missing())

    def kill_worker(self, killed: int) -> None:
        """Kill a worker; return when another has taken its place."""
        others = self.workers - {killed}
        os.kill(killed, signal.SIGKILL)
        until(lambda: self.workers - others - {killed})


@contextmanager
def behind_proxies(
    served: Served, start: Callable[..., Gateway]
) -> Iterator[tuple[Gateway, FaultProxy, FaultProxy]]:
    """A gateway of two workers, and the ways to its database and to Redis."""
    address = urlsplit(served.environment["DATABASE_URL"])
    database = FaultProxy(address.port or 5432, address.hostname or "127.0.0.1")
    with database as to_database, proxy_to_redis() as to_redis:
        user = address.netloc.rpartition("@")[0]
        through = address._replace(netloc=f"{user}@127.0.0.1:{to_database.port}")
        gateway = start(
            SVC_METRICS_TOKEN=TOKEN,
            SVC_WORKERS="2",
            REDIS_URL=url_through(to_redis),
            DATABASE_URL=through.geturl(),
            SVC_MAX_INFLIGHT="20",
            SVC_ORGANIZATION_SHARE="1",
        )
        # The limits' store is asked for organizations with limits alone.
        gateway = limited(gateway, requests_per_minute=1_000_000)
        gateway.sees_changes()
        yield gateway, to_database, to_redis
        gateway.command.kill()


def test_what_really_fails_raises_the_alert_that_is_for_it(
    served: Served, start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    with behind_proxies(served, start_gateway) as found, ExitStack() as stack:
        gateway, to_database, to_redis = found
        to_model = stack.enter_context(FaultProxy(gateway.simulator.port))
        away = f"http://127.0.0.1:{to_model.port}/v1"
        alone = publish(gateway, backend(gateway, base_url=away)).identifier
        both = publish(gateway, backend(gateway, base_url=away), backend(gateway)).identifier
        watched = Watched(gateway, tmp_path, stack)

        to_model.refuse()
        watched.models = [alone, both]
        watched.fires("SvcBackendFails", "SvcBackendEjected", "SvcErrors")
        to_model.heal()
        watched.models = ["running"]

        for worker in watched.workers:
            watched.kill_worker(worker)
        watched.fires("SvcWorkerRestarts")

        to_redis.refuse()
        watched.fires("SvcLimitsApart")
        to_redis.heal()

        with ExitStack() as held:
            for _ in range(50):
                client = held.enter_context(RawClient(gateway))
                client.chat("[[sim tokens=2000 pace=20]]", stream=True)
            watched.fires("SvcCapacityNear", "SvcCapacityFull", "SvcOverloaded")

        watched.models = []
        to_database.refuse()
        watched.fires("SvcDatabaseAway", "SvcPollAge")

        watched.models = ["running"]
        for worker in watched.workers:
            limit = ("prlimit", f"--pid={worker}", f"--fsize={JOURNAL_BYTES}")
            subprocess.run(limit, check=True)
        watched.fires("SvcJournalDown", "SvcNotReady")

        gateway.command.process.kill()
        watched.fires("SvcDown")
