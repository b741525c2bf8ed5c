"""The admin's list of backends shows their health in each worker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.admin.columns import NOTHING
from core.monitoring.worker_stats import WorkerStats
from inference.backends.pooled import BackendView
from inference.models import Deployment
from inference.serving.monitoring import STATS_NAME
from tests.support.builders import catalog_rows


def view(of: object, **facts: object) -> BackendView:
    fields: dict[str, Any] = {
        "ejected": False,
        "seconds_left": 0.0,
        "failures": 0,
        "total_failures": 0,
    }
    fields |= {"ejections": 0, "inflight": 1, "waiting": 0, "name": "gpu", **facts}
    return BackendView(id=str(of), **fields)


Tell = Callable[[list[BackendView], list[BackendView]], None]


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tell:
    """Let this worker tell of its backends, and another one of its own."""

    def tell(here: list[BackendView], there: list[BackendView]) -> None:
        own, other = WorkerStats(tmp_path, 0), WorkerStats(tmp_path, 1)
        own.register(STATS_NAME, lambda: here)
        other.register(STATS_NAME, lambda: there)
        other.publish()
        monkeypatch.setattr("inference.admin.backends.worker_stats", own)

    return tell


def test_the_list_shows_the_health_in_every_worker_of_the_host(
    operator: Client, tell: Tell
) -> None:
    sick, unused = catalog_rows.backend("sick"), catalog_rows.backend("unused")
    facts = {"ejected": True, "failures": 5, "seconds_left": 8.2, "unreported_tokens": 321}
    tell(
        [view(sick.pk, unreported_tokens=4000, improbable_reports=7)],
        [view(sick.pk, **facts, improbable_reports=35)],
    )

    page = operator.get("/admin/inference/backend/").content.decode()

    assert "worker 1: 5 failures in a row, ejected for 8 s more (2 running, 0 waiting)" in page
    assert page.count("no worker uses it") == 1
    assert '<td class="field-unreported">4321</td>' in page
    assert '<td class="field-improbable">42</td>' in page
    assert unused.name in page


def test_a_page_shows_what_the_prompt_cache_is_worth_on_this_host(
    operator: Client, tell: Tell
) -> None:
    warm, new = catalog_rows.backend("warm"), catalog_rows.backend("new")
    facts = {"prompt_tokens": 1000, "cached_tokens": 600, "moves": 2, "unanswered_tokens": 4000}
    facts_of_other = {**facts, "cached_tokens": 150, "moves": 1, "lost_tokens": 70}
    tell([view(warm.pk, **facts), view(new.pk)], [view(warm.pk, **facts_of_other), view(new.pk)])

    def shown(of: Any) -> dict[str, str]:
        page = operator.get(f"/admin/inference/backend/{of.pk}/change/").content.decode()
        return {
            name: found[1].strip()
            for name in ("cached", "moves", "unanswered", "lost")
            if (
                found := re.search(
                    rf'field-{name}".*?<div class="readonly">(.*?)</div>', page, re.DOTALL
                )
            )
        }

    assert shown(warm) == {
        "cached": "37.5% of 2,000 tokens",
        "moves": "3",
        "unanswered": "8,000",
        "lost": "70",
    }
    assert shown(new) == dict.fromkeys(("cached", "moves", "unanswered", "lost"), NOTHING)
    listed = operator.get("/admin/inference/backend/").content.decode()
    assert '<td class="field-cached">37.5% of 2,000 tokens</td>' in listed
    assert f'<td class="field-cached">{NOTHING}</td>' in listed


def test_a_drain_is_shown_with_what_is_left_of_it(
    operator: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entry = catalog_rows.published()
    row = entry.weights.deployments.get()
    row.draining = True
    row.save()
    here = WorkerStats(tmp_path, 0)
    monkeypatch.setattr("inference.serving.draining.worker_stats", here)

    def shown(running: int) -> str:
        here.register(
            STATS_NAME,
            lambda: [view(row.backend_id, draining=[row.model], running={row.model: running})],
        )
        pages = (
            "/admin/inference/backend/",
            f"/admin/inference/backend/{row.backend_id}/change/",
            f"/admin/inference/modelentry/{entry.pk}/change/",
        )
        return " ".join(operator.get(page).content.decode() for page in pages)

    assert ">draining<" in shown(2)
    assert "draining (2 running, 0 waiting on this host)" in shown(2)
    assert ">drained<" in shown(0)
    assert "drained: nothing runs there on this host" in shown(0)
    Deployment.objects.create(weights=catalog_rows.weights(), backend=row.backend, model="other")
    assert ">1 of 2 draining<" in shown(0)
