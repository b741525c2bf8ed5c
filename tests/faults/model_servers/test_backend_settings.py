"""The requests that a backend receives with the operator's settings for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.faults.case import Case, publish_on, single
from tests.support.live import Gateway
from tests.support.model_servers.scripted import ScriptedServer


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def received(
    gateway: Gateway, scripted: ScriptedServer, *, streamed: bool, **columns: Any
) -> dict[str, Any]:
    """Headers and body of one request with a limit of 1000 output tokens."""
    only = single(gateway, base_url=scripted.base_url, first_byte_seconds=10, **columns)
    case = Case(gateway, publish_on(gateway, only), [scripted.requests])
    seen = case.ask(streamed=streamed)
    assert seen.complete
    (asked,) = scripted.requests_of(seen.marker)
    return asked


def test_headers_and_fields_of_the_operator_reach_the_server(
    gateway: Gateway, scripted: ScriptedServer, streamed: bool
) -> None:
    asked = received(
        gateway,
        scripted,
        streamed=streamed,
        headers={"X-Portkey-Provider": "openai"},
        extra_fields={"top_k": 40, "options": {"num_ctx": 8192}},
        running_usage="llama.cpp",
    )

    assert asked["headers"]["x-portkey-provider"] == "openai"
    assert "authorization" not in asked["headers"]
    assert asked["body"]["top_k"] == 40
    assert asked["body"]["options"] == {"num_ctx": 8192}
    assert asked["body"].get("timings_per_token", False) is streamed
