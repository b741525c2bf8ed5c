"""The admin's index shows the running system, to those who may see it."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Organization
from core.clock import now
from core.ids import request_id
from core.monitoring.problems import PROBLEMS_STATS, WORDS, Problem
from core.monitoring.worker_stats import WorkerStats
from inference.catalog import lifecycle
from inference.serving.monitoring import STATS_NAME
from svc_project.admin import overview
from tests.inference.admin.test_backend_health import view
from tests.support.builders import catalog_rows
from tests.support.builders.receipts import receipt
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from usage.ledger import rows
from usage.models import ThrottleCount

QUERIES = 16


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> WorkerStats:
    stats = WorkerStats(tmp_path, 0)
    monkeypatch.setattr(overview, "worker_stats", stats)
    return stats


def index(client: Client) -> str:
    answer = client.get("/admin/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def write(*chats: dict[str, Any]) -> None:
    rows.insert([receipt(request_id=request_id(), **facts) for facts in chats], now())


def test_a_new_installation_has_an_index_without_figures(
    operator: Client, workers: WorkerStats
) -> None:
    page = index(operator)

    assert "<dt>Requests</dt><dd>0</dd>" in page
    assert "No chats in 7 days." in page
    assert "None in the next 60 days." in page
    assert "Needs attention" not in page


def test_every_page_leads_to_the_console_and_has_its_mark(
    operator: Client, workers: WorkerStats
) -> None:
    for address in ("/admin/", "/admin/accounts/apikey/"):
        page = operator.get(address).content.decode()
        assert '<a href="/console/">Console</a>' in page
        assert '<link rel="icon" href="/static/console.svg" type="image/svg+xml">' in page
    signing_in = Client().get("/admin/login/").content.decode()
    assert 'rel="icon"' in signing_in


def test_the_last_hour_is_shown_with_failures_refusals_and_times(
    operator: Client, workers: WorkerStats
) -> None:
    organization = Organization.objects.create(name="Northwind")
    owner = {"organization_id": str(organization.pk)}
    write(
        *(
            {"time_to_first_token_ms": 40 + number, "total_duration_ms": 900 + number, **owner}
            for number in range(20)
        ),
        {"outcome": "backend_timeout", "http_status": 504, "error_code": "timeout", **owner},
        {"outcome": "client_disconnected", "http_status": 499, **owner},
    )
    ThrottleCount.objects.create(
        organization_id=organization.pk,
        hour=now().replace(minute=0, second=0, microsecond=0),
        api_key_id=organization.pk,
        model_identifier="acme/demo-8b",
        limit_scope="requests",
        count=7,
    )

    page = index(operator)

    assert "<dt>Requests</dt><dd>22</dd>" in page
    failures = re.search(r'<a href="([^"]+)">1</a> \(4.5 %\)', page)
    assert failures is not None
    listed = operator.get(html.unescape(failures[1])).content.decode()
    assert "1 usage row" in listed
    assert "backend_timeout</span>" in listed
    assert "<dt>Refused by limits</dt><dd>7</dd>" in page
    # In the steps from 40 to 63 and from 630 to 1000 ms.
    assert "<dt>First token, p95</dt><dd>62 ms</dd>" in page
    assert "<dd>794 ms, 977 ms</dd>" in page


def test_the_dearest_organizations_have_their_exact_cost_behind_the_rounded_one(
    operator: Client, workers: WorkerStats
) -> None:
    for name, tokens in (("small", 10), ("large", 4_000_000)):
        organization = Organization.objects.create(name=name)
        write(
            {
                "organization_id": str(organization.pk),
                "backend_reported_input_tokens": tokens,
                "backend_reported_output_tokens": 0,
                "input_price_per_mtok": Decimal("0.15"),
            }
        )

    page = index(operator)

    assert page.index(">large</a>") < page.index(">small</a>")
    assert '0.60 USD</summary><span class="whole">0.60000000000000 USD</span>' in page
    assert '&lt;0.01 USD</summary><span class="whole">0.00000150000000 USD</span>' in page


def test_a_model_that_ends_soon_is_shown_with_its_successor_and_its_use(
    operator: Client, workers: WorkerStats
) -> None:
    old, new = catalog_rows.published("acme/old"), catalog_rows.published("acme/new")
    lifecycle.supersede(old, new, now() + timedelta(days=28, hours=1))
    write({"model_identifier": "acme/old", "model_id": str(old.pk)})

    page = index(operator)

    assert f'<a href="/admin/inference/modelentry/{old.pk}/change/">acme/old</a>' in page
    assert "in 28 days; successor acme/new. 1 request in 7 days." in page


def test_ejected_backends_and_problems_of_all_workers_are_shown(
    operator: Client, workers: WorkerStats, tmp_path: Path
) -> None:
    sick = catalog_rows.backend("sick")
    workers.register(STATS_NAME, lambda: [view(sick.pk, name="sick")])
    workers.register(PROBLEMS_STATS, lambda: ["database_away"])
    other = WorkerStats(tmp_path, 1)
    other.register(STATS_NAME, lambda: [view(sick.pk, name="sick", ejected=True, waiting=3)])
    other.register(PROBLEMS_STATS, lambda: ["database_away"])
    other.publish()

    page = index(operator)

    assert f'<a href="/admin/inference/backend/{sick.pk}/change/">sick</a>' in page
    assert "<dt>Chats running, waiting</dt><dd>2, 3</dd>" in page
    assert f"<li>{WORDS[Problem.DATABASE_AWAY]} (worker 0, 1)</li>" in page


def test_every_problem_that_a_worker_can_report_has_words() -> None:
    assert set(WORDS) == set(Problem)


def test_a_user_without_the_right_sees_no_figures(db: None, workers: WorkerStats) -> None:
    page = index(logged_in(operator_with("accounts.view_apikey")))

    assert "Chats since" not in page
    assert "Organizations by cost" not in page
    assert "Model servers" not in page
    assert "Models that end soon" not in page


def test_the_index_asks_a_fixed_number_of_queries(operator: Client, workers: WorkerStats) -> None:
    old, new = catalog_rows.published("acme/old"), catalog_rows.published("acme/new")
    lifecycle.supersede(old, new, now() + timedelta(days=28))
    for number in range(8):
        organization = Organization.objects.create(name=f"organization {number}")
        write({"organization_id": str(organization.pk), "model_identifier": "acme/old"})

    with CaptureQueriesContext(connection) as asked:
        index(operator)

    assert len(asked) == QUERIES, [query["sql"][:80] for query in asked]
