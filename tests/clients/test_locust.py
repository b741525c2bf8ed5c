"""Locust, unmodified, with the documented file: its token counts are those of the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Organization
from tests.support import live_catalog
from tests.support.clients.separate_environment import program
from tests.support.live import ROOT, Gateway, run
from usage.models import UsageRow

pytestmark = pytest.mark.timeout(900)

REQUESTS = 40


def locust(gateway: Gateway, requests: int) -> tuple[int, dict[str, Any], dict[str, int]]:
    """Run it; return its exit code, its statistics of the chat requests, and its token counts."""
    # The tests' own backend times out after two seconds, which a busy machine may take.
    patient = live_catalog.backend(gateway, first_byte_seconds=60, idle_seconds=60)
    model = live_catalog.publish(gateway, patient).identifier
    ran = run(
        *(program("locust"), "-f", ROOT / "docs/examples/locustfile.py", "--headless"),
        *("--users", "4", "--spawn-rate", "4", "--host", gateway.base_url, "--model", model),
        *("--requests", str(requests), "--max-tokens", "16", "--json"),
        environment={"OPENAI_API_KEY": gateway.key},
        timeout=240,
    )
    print(ran.stderr)  # for -rP
    assert ran.stdout, ran.stderr
    tokens, _, statistics = ran.stdout.partition("\n")
    (chat,) = [each for each in json.loads(statistics) if each["method"] == "POST"]
    return ran.returncode, chat, json.loads(tokens)


def tokens_of(rows: list[UsageRow]) -> dict[str, int]:
    return {
        "answers": len(rows),
        "prompt_tokens": sum(row.backend_reported_input_tokens for row in rows),
        "completion_tokens": sum(row.backend_reported_output_tokens for row in rows),
    }


def test_locust_counts_the_tokens_of_the_ledger(gateway: Gateway) -> None:
    code, chat, tokens = locust(gateway, REQUESTS)

    assert (code, chat["num_requests"], chat["num_failures"]) == (0, REQUESTS, 0)
    rows = gateway.rows_when(REQUESTS)
    assert [row.outcome for row in rows] == ["success"] * REQUESTS
    assert tokens == tokens_of(rows)


def test_a_refusal_by_a_limit_is_a_failure_to_locust_and_has_no_row(gateway: Gateway) -> None:
    Organization.objects.filter(pk=gateway.organization.pk).update(requests_per_minute=1)
    # A key that was not used before, so that the gateway has no older copy of its limits.
    gateway.key = gateway.mint()

    code, chat, tokens = locust(gateway, 10)

    assert code == 1
    assert chat["num_requests"] == 10
    assert 1 <= chat["num_failures"] < 10
    rows = gateway.rows_when(10 - chat["num_failures"])
    assert len(rows) == 10 - chat["num_failures"]
    assert tokens == tokens_of(rows)
