"""Locust, unmodified, with the documented file: what it counts is what the ledger has."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from accounts.models import Organization
from tests import live_catalog
from tests.clients.elsewhere import program
from tests.live import ROOT, Gateway
from usage.models import UsageRow

pytestmark = pytest.mark.timeout(900)

REQUESTS = 40


def locust(gateway: Gateway, requests: int) -> tuple[int, dict[str, Any], dict[str, int]]:
    """Its exit code, its figures of the chat requests, and the tokens that it was told of."""
    # The tests' own backend is given up after two seconds, which a busy machine may take.
    patient = live_catalog.backend(gateway, first_byte_seconds=60, idle_seconds=60)
    model = live_catalog.publish(gateway, patient).identifier
    run = subprocess.run(
        [
            *(program("locust"), "-f", ROOT / "docs/examples/locustfile.py", "--headless"),
            *("--users", "4", "--spawn-rate", "4", "--host", gateway.base_url),
            *("--model", model),
            *("--requests", str(requests), "--max-tokens", "16", "--json"),
        ],
        env={**os.environ, "OPENAI_API_KEY": gateway.key},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    print(run.stderr)  # for -rP
    assert run.stdout, run.stderr
    tokens, _, statistics = run.stdout.partition("\n")
    (chat,) = [each for each in json.loads(statistics) if each["method"] == "POST"]
    return run.returncode, chat, json.loads(tokens)


def tokens_of(rows: list[UsageRow]) -> dict[str, int]:
    return {
        "answers": len(rows),
        "prompt_tokens": sum(row.backend_reported_input_tokens for row in rows),
        "completion_tokens": sum(row.backend_reported_output_tokens for row in rows),
    }


def test_locust_counts_what_the_ledger_has(gateway: Gateway) -> None:
    code, chat, tokens = locust(gateway, REQUESTS)

    assert (code, chat["num_requests"], chat["num_failures"]) == (0, REQUESTS, 0)
    rows = gateway.rows()
    assert [row.outcome for row in rows] == ["success"] * REQUESTS
    assert tokens == tokens_of(rows)


def test_what_a_limit_refuses_is_a_failure_to_locust_and_no_row(gateway: Gateway) -> None:
    Organization.objects.filter(pk=gateway.organization.pk).update(requests_per_minute=1)
    # A key that was not used before: the gateway holds no older copy of what it may do.
    gateway.key = gateway.mint()

    code, chat, tokens = locust(gateway, 10)

    assert code == 1
    assert chat["num_requests"] == 10
    assert 1 <= chat["num_failures"] < 10
    rows = gateway.rows()
    assert len(rows) == 10 - chat["num_failures"]
    assert tokens == tokens_of(rows)
