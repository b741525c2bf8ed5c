"""The scheduled test of servers: what it sends, who runs it, and where its result is shown."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest
from django.db import connections
from django.test import Client

from core import clock
from inference.models import Backend, BackendTest, Deployment
from inference.models.last_tests import Verdict
from inference.probe import retest
from tests.support.builders.catalog_rows import serving
from tests.support.model_servers.dialects import VLLM, running
from tests.support.pages.admin_forms import text_of

pytestmark = pytest.mark.django_db(transaction=True)


def run() -> None:
    asyncio.run(retest.retest_due())
    connections.close_all()


def test_only_the_list_of_models_is_requested_and_the_result_is_shown(operator: Client) -> None:
    with running(VLLM) as server:
        serving(f"{server.root}/v1")
        run()
        assert server.bodies == []

    kept = BackendTest.objects.get()
    assert (kept.result, kept.due_at > clock.now()) == (Verdict.PASSED, True)
    shown = text_of(operator.get("/admin/inference/backend/"))
    assert re.search(r"passed \d+ \w+ 20", shown)
    assert "Needs attention" not in text_of(operator.get("/admin/"))


def test_a_server_that_is_away_needs_attention_until_a_test_passes(operator: Client) -> None:
    backend = serving("http://127.0.0.1:1/v1")
    run()

    home = operator.get("/admin/")
    assert "The last test of" in text_of(home)
    assert "Connection refused" in text_of(home)
    assert f'href="/admin/inference/backend/{backend.pk}/test/"' in home.content.decode()
    assert "Connection refused" in text_of(operator.get("/admin/inference/backend/"))
    with running(VLLM) as server:
        Backend.objects.update(base_url=f"{server.root}/v1")
        operator.post(f"/admin/inference/backend/{backend.pk}/test/")
    assert "The last test of" not in text_of(operator.get("/admin/"))


def test_a_model_that_the_server_no_longer_lists_is_named(operator: Client) -> None:
    with running(VLLM) as server:
        serving(f"{server.root}/v1", "another")
        run()

    assert "its list does not name another" in text_of(operator.get("/admin/inference/backend/"))
    assert BackendTest.objects.get().result == Verdict.UNLISTED


def test_a_test_is_claimed_by_one_process_and_comes_again_when_it_is_due() -> None:
    backend = serving("http://127.0.0.1:1/v1")
    Backend.objects.create(name="off", base_url="http://127.0.0.1:2/v1", enabled=False)

    assert [each.backend_id for each in retest.claim()] == [backend.pk]
    assert retest.claim() == []
    BackendTest.objects.update(due_at=clock.now() - timedelta(seconds=1))
    assert len(retest.claim()) == 1


def test_what_a_test_misses_leads_to_where_it_is_added(operator: Client) -> None:
    with running(VLLM) as server:
        backend = serving(f"{server.root}/v1")
        Deployment.objects.all().delete()
        page = operator.post(f"/admin/inference/backend/{backend.pk}/test/").content.decode()

    assert "It lists /models/qwen" in page
    assert f'href="/admin/inference/backend/{backend.pk}/change/#deployments-group"' in page
    wizard = f"/admin/inference/backend/add-server/?backend={backend.pk}"
    assert f'href="{wizard}"' in page
    assert f'value="{server.root}/v1"' in operator.get(wizard).content.decode()
    assert operator.get(f"{wizard}x").status_code == 200
