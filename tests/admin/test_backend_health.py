"""The admin's list of backends says how the workers find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from inference.pool import BackendView
from inference.present import VIEW
from svc_project.lib import worker_views
from svc_project.lib.worker_views import WorkerViews
from tests.inference import making


def view(of: object, **facts: object) -> BackendView:
    fields: dict[str, Any] = {
        "ejected": False,
        "seconds_left": 0.0,
        "failures": 0,
        "total_failures": 0,
    }
    fields |= {"ejections": 0, "inflight": 1, "waiting": 0, "limit": 64, "name": "gpu", **facts}
    return BackendView(id=str(of), **fields)


@pytest.mark.django_db
def test_the_list_shows_what_every_worker_of_the_host_knows(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client.force_login(User.objects.create_superuser("operator@svc.example", "x"))
    sick, unused = making.backend("sick"), making.backend("unused")
    here, other = WorkerViews(tmp_path, 0), WorkerViews(tmp_path, 1)
    here.offer(VIEW, lambda: [view(sick.pk, unreported_tokens=4000)])
    facts = {"ejected": True, "failures": 5, "seconds_left": 8.2, "unreported_tokens": 321}
    other.offer(VIEW, lambda: [view(sick.pk, **facts)])
    other.publish()
    monkeypatch.setattr("inference.admin.views", here)

    page = client.get("/admin/inference/backend/").content.decode()

    assert "worker 1: 5 failures in a row, left out for 8 s more (2 running, 0 waiting)" in page
    assert page.count("no worker uses it") == 1
    assert '<td class="field-unreported">4321</td>' in page
    assert unused.name in page
    assert worker_views.views is not here


def test_a_worker_that_died_does_not_count(tmp_path: Path) -> None:
    here, other = WorkerViews(tmp_path, 0), WorkerViews(tmp_path, 1)
    here.offer("word", lambda: "here")
    other.offer("word", lambda: "there")
    other.publish()
    assert here.read("word", str) == [(0, "here"), (1, "there")]

    other.withdraw()

    assert here.read("word", str) == [(0, "here")]
