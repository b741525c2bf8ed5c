"""Prompts, answers and keys are in no log, no journal and no table."""

from __future__ import annotations

from pathlib import Path

import httpx2

from accounts.keys.keys import mint
from accounts.models import Scope
from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.live import Gateway
from tests.support.privacy import canary, holders, kept
from tests.support.until import until
from usage.models import Refusal

PROMPT, COMPLETION, INVALID, UNKNOWN = map(canary, ("prompt", "completion", "invalid", "unknown"))
EXPECTED_REFUSALS = 9
FAULTS = ["none", "status@400", "status@500", "html", "cut", "cut@2", "garbage@1", "error_frame@2"]


def say_everything(gateway: Gateway) -> None:
    """Send served, refused and broken requests, with a canary in every field that can hold one."""
    for fault in FAULTS:
        for streamed in (True, False):
            gateway.chat(
                f"{PROMPT} [[sim fault={fault}]] say: {COMPLETION}",
                stream=streamed,
                user=PROMPT,
                metadata={PROMPT: PROMPT},
                stop=[PROMPT],
                tools=[{"type": "function", "function": {"name": PROMPT, "description": PROMPT}}],
            )
    schema = {"type": INVALID, INVALID: INVALID}
    for fields in (
        {"temperature": INVALID},
        {"messages": [{"role": INVALID, "content": INVALID}]},
        {"tool_choice": INVALID},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": INVALID, "schema": schema},
            }
        },
        {INVALID: INVALID, "n": 2},
    ):
        assert gateway.chat(INVALID, **fields).status_code == 400
    assert gateway.post(f'{{"{INVALID}": {INVALID}'.encode()).status_code == 400
    assert gateway.chat(INVALID, model=f"{INVALID} {INVALID}").status_code == 404
    assert gateway.chat(INVALID + "x" * 70_000, "mini").status_code == 413
    httpx2.get(
        f"{gateway.url}/v1/{INVALID}?{INVALID}={INVALID}", headers=gateway.headers, timeout=60
    )
    with RawClient(gateway) as client:
        client.chat(f"{PROMPT} [[sim tokens=100 pace=50]]", stream=True)
        client.read_until(3, b"data: ")
        client.disconnect(Disconnect.RST)
    with RawClient(gateway) as client:
        client.send(f"NONSENSE {INVALID}\r\n\r\n".encode())
        client.rest()


def test_no_canary_is_stored_or_logged(gateway: Gateway, worker_directory: Path) -> None:
    wrong_scope = gateway.mint(Scope.READ)
    unused = mint(gateway.organization, Scope.INFERENCE, "seen once")
    expected_rows = len(FAULTS) * 2 + 1

    say_everything(gateway)
    for key in (wrong_scope, f"svc_live_{UNKNOWN}", UNKNOWN):
        headers = {"authorization": f"Bearer {key}"}
        assert gateway.post({}, headers=headers).status_code == 401
    gateway.rows_when(expected_rows)
    refused = Refusal.objects.filter(organization_id=gateway.organization.pk)
    until(lambda: refused.count() >= EXPECTED_REFUSALS)

    found = kept(worker_directory)
    for secret in (PROMPT, COMPLETION, INVALID, UNKNOWN, gateway.key, wrong_scope, unused.secret):
        assert holders(found, secret) == []
    for shown in (gateway.organization.name, unused.api_key.prefix):
        assert Path("every table") in holders(found, shown)
