"""``drain_deployment``: what it sets and tells, and how long it waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from core.monitoring.worker_stats import WorkerStats
from inference.models import Deployment
from inference.serving.monitoring import STATS_NAME
from tests.inference.admin.test_backend_health import view
from tests.support.builders import catalog_rows

pytestmark = pytest.mark.django_db

Tell = Callable[..., None]


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tell:
    """Let a worker tell of the backend of ``row``, and what runs there."""
    monkeypatch.setattr("inference.serving.draining.worker_stats", WorkerStats(tmp_path, 99))

    def tell(row: Deployment, worker: int = 0, generation: str = "", **facts: Any) -> None:
        stats = WorkerStats(tmp_path, worker, generation)
        seen = view(row.backend_id, **{"draining": [row.model], **facts})
        stats.register(STATS_NAME, lambda: [seen])
        stats.publish()

    return tell


@pytest.fixture
def row() -> Deployment:
    entry = catalog_rows.published()
    return entry.weights.deployments.select_related("backend", "weights").get()


def drain(*arguments: str, **options: Any) -> tuple[list[dict[str, Any]], str]:
    """What the command prints: its rows, and what it remarks on."""
    out, remarks = StringIO(), StringIO()
    call_command("drain_deployment", *arguments, json=True, stdout=out, stderr=remarks, **options)
    return json.loads(out.getvalue()), remarks.getvalue()


def test_a_backend_is_drained_and_serves_again(row: Deployment, tell: Tell) -> None:
    other = Deployment.objects.create(
        weights=catalog_rows.weights(), backend=row.backend, model="other"
    )
    tell(row, running={row.model: 2}, waiting=1)

    shown, remarks = drain(row.backend.name)

    assert {each["deployment"]: each["draining"] for each in shown} == {
        str(row): True,
        str(other): True,
    }
    assert [each["running"] for each in shown if each["model"] == row.model] == [2]
    assert "acme/demo-8b has no other deployment: its requests fail." in remarks
    entry = AuditEntry.objects.latest("id")
    assert (entry.kind, entry.changes) == ("deployment", {"draining": [False, True]})

    drain(row.backend.name)
    assert AuditEntry.objects.latest("id") == entry, "what drains already is left alone"
    _, remarks = drain(row.backend.name, undo=True)
    assert not Deployment.objects.filter(draining=True).exists()
    assert remarks == ""


def test_one_deployment_is_named_as_the_other_commands_print_it(row: Deployment) -> None:
    other = Deployment.objects.create(
        weights=catalog_rows.weights(), backend=row.backend, model="other"
    )

    drain(str(row))

    assert set(Deployment.objects.values_list("pk", "draining")) == {
        (row.pk, True),
        (other.pk, False),
    }


def test_a_name_that_means_nothing_is_refused(row: Deployment) -> None:
    for name in ("gpu-unknown", f"nothing on {row.backend}", ""):
        with pytest.raises(CommandError, match=f"NAME: no deployment .* Backends: {row.backend}"):
            drain(name)
    with pytest.raises(CommandError, match="--wait goes with a drain"):
        drain(row.backend.name, undo=True, wait=1)


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "something runs": ({"running": {"demo-on-backend": 1}}, r"not empty \(1 running\)"),
    "something waits": ({"waiting": 1}, r"not empty \(0 running\)"),
    "a worker does not know yet": ({"draining": []}, "has not read yet that it drains"),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_wait_ends_with_status_1_while_it_is_not_empty(
    row: Deployment, tell: Tell, name: str
) -> None:
    facts, words = LEFT[name]
    tell(row)
    tell(row, worker=1, **facts)

    with pytest.raises(CommandError, match=words):
        drain(row.backend.name, wait=0.3)

    assert Deployment.objects.get(pk=row.pk).draining, "it drains on"


def test_a_wait_without_a_gateway_says_so(row: Deployment, tell: Tell) -> None:
    with pytest.raises(CommandError, match="No gateway of this host tells"):
        drain(row.backend.name, wait=0.3)


def test_a_wait_ends_when_every_worker_is_empty(row: Deployment, tell: Tell) -> None:
    tell(row, running={"another-model": 5})
    tell(row, worker=1)

    (shown,), _ = drain(row.backend.name, wait=30)

    assert (shown["running"], shown["waiting"]) == (0, 0)


def test_during_a_reload_the_workers_that_end_count_too(row: Deployment, tell: Tell) -> None:
    tell(row, generation="old", running={row.model: 2})
    tell(row, generation="new", running={})

    shown, _ = drain(row.backend.name)

    assert [each["running"] for each in shown] == [2]


def test_a_deployment_without_a_published_model_is_empty_at_once(tell: Tell) -> None:
    backend = catalog_rows.backend("spare")
    row = Deployment.objects.create(weights=catalog_rows.weights(), backend=backend, model="m")
    tell(row, draining=[])

    (shown,), _ = drain("spare", wait=30)

    assert (shown["draining"], shown["running"]) == (True, 0)
