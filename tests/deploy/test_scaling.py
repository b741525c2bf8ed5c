"""The queries of ``deploy/kubernetes/model-servers.yaml``: how many model servers a load needs."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.deploy.test_monitoring import families, prometheus, watched
from tests.support.live import ROOT, Gateway
from tests.support.servers.prometheus import Prometheus, simulate

__all__ = ["prometheus", "watched"]

SCALED: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy/kubernetes/model-servers.yaml").read_text()
)["spec"]
TRIGGERS = {each["name"]: each["metadata"] for each in SCALED["triggers"]}
SLOTS = 10
WORKERS = [(instance, worker) for instance in ("a:8000", "b:8000") for worker in ("0", "1")]


class Load(NamedTuple):
    """Requests of each server: (running, waiting, waiting of class batch); the queries' answers."""

    servers: dict[str, tuple[int, int, int]]
    saturation: float
    demand: float
    replicas: int
    """That the autoscaler then wants, before the bounds of the ScaledObject."""


LOADS = {
    "nothing runs": Load({"vllm-0": (0, 0, 0), "vllm-1": (0, 0, 0)}, 0, 0, 0),
    "three quarters of two": Load({"vllm-0": (8, 0, 0), "vllm-1": (7, 0, 0)}, 1.5, 1.5, 2),
    "two that are full": Load({"vllm-0": (10, 0, 0), "vllm-1": (10, 0, 0)}, 2, 2, 3),
    "twelve that wait for any of two": Load(
        {"vllm-0": (10, 12, 0), "vllm-1": (10, 12, 0)}, 2, 3.2, 4
    ),
    "later turns that wait for their own server": Load(
        {"vllm-0": (10, 15, 0), "vllm-1": (10, 2, 0)}, 2, 3.5, 4
    ),
    "batch requests that wait": Load({"vllm-0": (10, 0, 90), "vllm-1": (10, 0, 90)}, 2, 2, 3),
    "a replica that does not run": Load({"vllm-0": (4, 0, 0), "vllm-1": (0, 0, 0)}, 0.4, 0.4, 1),
    "another model's servers": Load({"vllm-0": (4, 0, 0), "ollama": (10, 50, 0)}, 0.4, 0.4, 1),
}


def series(load: Load) -> Iterator[tuple[str, int]]:
    """What four workers on two hosts export: the work divided among them, the slots in all of them."""
    for number, (instance, worker) in enumerate(WORKERS):
        for backend, (running, waiting, batch) in load.servers.items():
            labels = f'job="svc",instance="{instance}",worker="{worker}",backend="{backend}"'
            part = [(each + number) // len(WORKERS) for each in (running, waiting, batch)]
            yield f"svc_backend_in_flight{{{labels}}}", part[0]
            yield f"svc_backend_slots{{{labels}}}", SLOTS
            for priority, count in (("standard", part[1]), ("interactive", 0), ("batch", part[2])):
                yield f'svc_backend_waiting{{{labels},priority="{priority}"}}', count


def wanted(load: Load) -> int:
    """What an autoscaler makes of averages over replicas: the most that a trigger wants."""
    values = {"saturation": load.saturation, "demand": load.demand}
    return max(ceil(values[name] / float(TRIGGERS[name]["threshold"])) for name in TRIGGERS)


@pytest.mark.parametrize("name", LOADS)
def test_the_queries_add_up_workers_and_hosts(name: str, tmp_path: Path) -> None:
    load = LOADS[name]
    expected = {"saturation": load.saturation, "demand": load.demand}
    tests = [
        {
            # promtool compares floats exactly.
            "expr": f"round({trigger['query']}, 0.001)",
            "eval_time": "2m",
            "exp_samples": [{"labels": "{}", "value": expected[name]}],
        }
        for name, trigger in TRIGGERS.items()
    ]

    simulate(tmp_path, {name: f"{value}+0x3" for name, value in series(load)}, "1m", *tests)

    assert wanted(load) == load.replicas


def test_a_gateway_exports_what_the_queries_read(prometheus: Prometheus, watched: Gateway) -> None:
    for trigger in TRIGGERS.values():
        assert families(trigger["query"]) <= {
            "svc_backend_in_flight",
            "svc_backend_slots",
            "svc_backend_waiting",
        }
        ours = trigger["query"].replace("vllm-[0-9]+", "simulator")
        [found] = prometheus.ask(ours)
        assert float(found["value"][1]) == 0, "one number, also while nothing runs"
        assert prometheus.ask(trigger["query"]) == [], "an error for KEDA, and not 0"


def test_the_bounds_of_the_scaled_object_fit_each_other() -> None:
    assert TRIGGERS.keys() == {"saturation", "demand"}
    assert 1 <= SCALED["minReplicaCount"] < SCALED["maxReplicaCount"]
    for trigger in TRIGGERS.values():
        assert trigger["ignoreNullValues"] == "false", "without metrics the replicas stay"
