"""The trace that a client began goes on in the model server, in whatever attempt answers."""

from __future__ import annotations

import uuid

from tests.support.faults.case import publish_on, publish_single, single
from tests.support.live import Gateway, free_port
from tests.support.model_servers.scripted import ScriptedServer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"


def received(server: ScriptedServer, marker: str) -> dict[str, str]:
    """The headers of the one request with ``marker`` that the model server got."""
    (entry,) = server.requests_of(marker)
    headers: dict[str, str] = entry["headers"]
    return headers


def test_trace_headers_reach_the_first_and_the_second_model_server_unchanged(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    away = single(gateway, base_url=f"http://127.0.0.1:{free_port()}/v1")
    model = publish_on(gateway, away, single(gateway, base_url=scripted.base_url))
    markers = [str(uuid.uuid4()) for _ in range(2)]
    for marker in markers:  # backends take turns
        answer = gateway.post(
            {"model": model, "messages": [{"role": "user", "content": marker}]},
            headers={"traceparent": PARENT, "tracestate": STATE},
        )
        assert answer.status_code == 200, answer.text

    for marker in markers:
        headers = received(scripted, marker)
        assert (headers["traceparent"], headers["tracestate"]) == (PARENT, STATE)


def test_the_next_request_of_a_connection_has_no_trace(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    model = publish_single(gateway, scripted.base_url, running=True)
    markers = [str(uuid.uuid4()) for _ in range(2)]
    with gateway.openai() as client:
        for marker, headers in zip(markers, ({"traceparent": PARENT}, {}), strict=True):
            client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": marker}],
                extra_headers=headers,
            )

    assert "traceparent" in received(scripted, markers[0])
    assert "traceparent" not in received(scripted, markers[1])
