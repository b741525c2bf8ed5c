"""A deployment that drains, in a running gateway: what goes on there, and what does not."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.management import call_command
from django.db import connections

from core.monitoring.worker_stats import WorkerStats
from inference.models import Deployment
from tests.support.live import NO_TLS, Gateway
from tests.support.live_catalog import backend, publish
from tests.support.until import until

LONG = "A long beginning of a conversation. " * 60


def test_what_runs_ends_there_and_all_else_goes_elsewhere(
    start_gateway: Callable[..., Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = start_gateway()
    monkeypatch.setattr(
        "inference.serving.draining.worker_stats", WorkerStats(tmp_path / "workers", 99)
    )
    old, new = backend(gateway, running_usage="vllm"), backend(gateway, running_usage="vllm")
    entry = publish(gateway, old, served_as="on-old")
    said = [{"role": "user", "content": f"{uuid.uuid4()} {LONG}"}]

    def asked(messages: list[dict[str, Any]]) -> str:
        """The name on the backend that the model server was asked for."""
        answer = gateway.post({"model": entry.identifier, "messages": messages})
        assert answer.status_code == 200, answer.text
        request = gateway.simulator.requests()[-1]
        assert request["body"]["messages"] == messages
        return str(request["model"])

    assert asked(said) == "on-old"
    Deployment.objects.create(weights=entry.weights, backend=new, model="on-new")
    slow = {
        "model": entry.identifier,
        "messages": [{"role": "user", "content": "[[sim tokens=500 pace=5]] slowly"}],
        "stream": True,
    }
    with (
        ThreadPoolExecutor(1) as threads,
        httpx2.Client(verify=NO_TLS, timeout=60, headers=gateway.headers) as client,
    ):

        def drain(**options: Any) -> list[dict[str, Any]]:
            out = StringIO()
            call_command(
                "drain_deployment", old.name, json=True, stdout=out, stderr=StringIO(), **options
            )
            return list(json.loads(out.getvalue()))

        def drain_in_thread() -> list[dict[str, Any]]:
            try:
                return drain(wait=60)
            finally:
                # A thread has a connection of its own.
                connections.close_all()

        url = f"{gateway.base_url}/chat/completions"
        with client.stream("POST", url, json=slow) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            drained = threads.submit(drain_in_thread)
            later = [
                *said,
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": "And then?"},
            ]
            until(lambda: asked(later) == "on-new")
            assert [asked(said) for _ in range(5)] == ["on-new"] * 5
            # Workers tell once a second what runs.
            until(lambda: [row["running"] for row in drain()] == [1])
            assert next(lines) == "", "the stream goes on"
            assert not drained.done()
        ((row,),) = [drained.result(60)]
        assert (row["running"], row["waiting"]) == (0, 0)

    call_command("drain_deployment", new.name, stdout=StringIO(), stderr=StringIO())
    rows = len(gateway.rows())
    refused = until(
        lambda: (
            answer
            if (answer := gateway.chat("Hello.", entry.identifier)).status_code != 200
            else None
        )
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (500, "backend_unavailable")
    served = len(gateway.rows())
    assert gateway.chat("Hello.", entry.identifier).status_code == 500
    assert len(gateway.rows()) == served >= rows, "no row, as without a deployment"
