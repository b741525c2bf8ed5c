"""Priority classes on a real gateway, whose model server has one slot: who is answered first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from accounts.keys import keys
from accounts.keys.keys import KeyLimits
from accounts.models import ApiKey, Organization, Scope
from core.sharing.priority import Priority
from inference.models import Backend
from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.live import Gateway, marker_of
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics
from tests.support.until import until

QUEUE_LENGTH = 4


@dataclass
class Line:
    """A model whose only slot is taken until ``open``, and the requests that wait for it."""

    gateway: Gateway
    backend: Backend
    model: str
    holder: RawClient
    threads: ThreadPoolExecutor
    joined: dict[str, Future[httpx2.Response]] = field(default_factory=dict)

    def secret_of(self, priority: str | None) -> tuple[ApiKey, str]:
        """A new key of that class."""
        own = KeyLimits(priority=priority)
        new = keys.mint(self.gateway.organization, Scope.INFERENCE, limits=own)
        return new.api_key, new.secret

    def join(self, name: str, secret: str, **fields: Any) -> None:
        """Send a request, and wait until it is in the queue or has its answer."""
        before = self.waiting()
        body = {
            "model": self.model,
            "messages": [
                {"role": "user", "content": f"{name} {self.backend.pk}. [[sim tokens=3]]"}
            ],
            **fields,
        }
        headers = {"authorization": f"Bearer {secret}"}
        sent = self.threads.submit(self.gateway.post, body, headers=headers)
        self.joined[name] = sent
        until(lambda: self.waiting() != before or any(each.done() for each in self.joined.values()))

    def waiting(self) -> dict[str, float]:
        seen = metrics(self.gateway)
        return {
            each.label: seen.sum(
                "svc_backend_waiting", backend=self.backend.name, priority=each.label
            )
            for each in Priority
        }

    def open(self) -> list[str]:
        """Free the slot; return the names in the order in which the model server answered them."""
        self.holder.disconnect(Disconnect.FIN)
        statuses = {name: sent.result().status_code for name, sent in self.joined.items()}
        order = [name for name, _ in self.received()]
        assert sorted(order) == sorted(name for name in statuses if statuses[name] == 200)
        return order

    def received(self) -> list[tuple[str, Any]]:
        """Names and tiers of the requests that the model server has answered, in that order."""
        return [
            (marker.removesuffix(f" {self.backend.pk}"), each["body"].get("service_tier"))
            for each in self.gateway.simulator.requests()
            if (marker := marker_of(each)).endswith(f" {self.backend.pk}")
        ]


@pytest.fixture
def line(gateway: Gateway, gateway_with: Callable[..., Gateway]) -> Iterator[Line]:
    patient = gateway_with(
        SVC_BACKEND_QUEUE_LENGTH=str(QUEUE_LENGTH), SVC_BACKEND_QUEUE_SECONDS="60"
    )
    single = backend(gateway, max_concurrency=1, running_usage="vllm")
    model = publish(patient, single).identifier
    with RawClient(patient) as holder, ThreadPoolExecutor() as threads:
        holder.chat("[[sim tokens=30000 pace=20]]", model, stream=True)
        holder.read_until(1, b"data: ")
        yield Line(patient, single, model, holder, threads)
        holder.disconnect(Disconnect.FIN)


def waits(gateway: Gateway) -> dict[str, float]:
    seen = metrics(gateway)
    return {
        each.label: seen.sum("svc_backend_wait_seconds_count", priority=each.label)
        for each in Priority
    }


def test_higher_classes_are_answered_first_and_flex_is_batch(line: Line) -> None:
    secrets = {each.label: line.secret_of(each.label)[1] for each in Priority}
    before = waits(line.gateway)
    line.join("flex", secrets["interactive"], service_tier="flex")
    line.join("batch", secrets["batch"], service_tier="priority")
    line.join("standard", secrets["standard"], service_tier="auto")
    line.join("interactive", secrets["interactive"])
    assert line.waiting() == {"interactive": 1, "standard": 1, "batch": 2}

    assert line.open() == ["interactive", "standard", "flex", "batch"]

    rows = line.gateway.rows_when(5)
    outcomes = sorted(row.outcome for row in rows)
    assert outcomes == ["client_disconnected", *["success"] * 4]
    after = waits(line.gateway)
    counted = {label: after[label] - before[label] for label in after}
    assert counted == {"interactive": 1, "standard": 1, "batch": 2}
    tiers = [tier for _, tier in line.received()]
    assert tiers == [None, "auto", "flex", "priority"], "each is sent on as it came"


def test_a_change_of_a_class_holds_from_the_next_request_on(line: Line) -> None:
    api_key, secret = line.secret_of(None)
    _, other = line.secret_of("standard")
    line.join("of the organization", secret)
    line.join("before", other)
    keys.change(api_key, {"priority": "interactive"})
    line.gateway.sees_changes()
    line.join("raised", secret)
    keys.change(api_key, {"priority": None})
    Organization.objects.filter(pk=line.gateway.organization.pk).update(priority="batch")
    line.gateway.sees_changes()
    line.join("lowered", secret)
    assert line.waiting() == {"interactive": 1, "standard": 2, "batch": 1}

    assert line.open() == ["raised", "of the organization", "before", "lowered"]


def test_a_full_queue_refuses_the_newest_of_the_lowest_class(line: Line) -> None:
    secrets = {each.label: line.secret_of(each.label)[1] for each in Priority}
    for number in range(QUEUE_LENGTH):
        line.join(f"batch {number}", secrets["batch"])
    line.join("interactive", secrets["interactive"])

    last = line.joined[f"batch {QUEUE_LENGTH - 1}"].result()
    assert (last.status_code, last.json()["error"]["code"]) == (503, "server_overloaded")
    assert line.open() == ["interactive", "batch 0", "batch 1", "batch 2"]
    assert len(line.gateway.rows_when(5)) == 5, "a refused request has no row"
