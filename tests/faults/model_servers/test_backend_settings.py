"""The requests that a backend receives with the operator's settings for it."""

from __future__ import annotations

from tests.support.faults.case import Case, publish_on, single
from tests.support.live import Gateway
from tests.support.model_servers.scripted import ScriptedServer


def test_headers_and_fields_of_the_operator_reach_the_server(
    gateway: Gateway, scripted: ScriptedServer, streamed: bool
) -> None:
    only = single(
        gateway,
        base_url=scripted.base_url,
        first_byte_seconds=10,
        headers={"X-Portkey-Provider": "openai"},
        extra_fields={"top_k": 40, "options": {"num_ctx": 8192}},
        running_usage="llama.cpp",
    )
    seen = Case(gateway, publish_on(gateway, only), [scripted.requests]).ask(streamed=streamed)

    assert seen.complete
    (asked,) = scripted.requests_of(seen.marker)
    assert asked["headers"]["x-portkey-provider"] == "openai"
    assert "authorization" not in asked["headers"]
    assert asked["body"]["top_k"] == 40
    assert asked["body"]["options"] == {"num_ctx": 8192}
    assert asked["body"].get("timings_per_token", False) is streamed
