"""The model simulator as a server: errors, keys, its log, its end."""

from __future__ import annotations

import json
import signal
import socket
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_servers.simulator import RunningSimulator, ask, running_simulator
from tests.support.until import until


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard"}]}, "messages[0].role"),
        ({"temperature": 3}, "temperature"),
        ({"n": 2}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"messages": [{"role": "user", "content": "[[sim speed=1]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim tokens=x]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim burst=0]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim fault=sad]]"}]}, "messages[0].content"),
    ],
)
def test_a_bad_field_is_a_400_that_names_it(
    simulator: RunningSimulator, fields: dict[str, Any], param: str
) -> None:
    response = simulator.post({**ask("hello"), **fields})
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param)
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"model": "\xff"}', b"[" * 50_000])
def test_a_body_that_is_no_json_object_is_a_400(simulator: RunningSimulator, body: bytes) -> None:
    response = simulator.client.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.long
def test_named_models_and_a_key_are_enforced() -> None:
    with running_simulator("--model", "a", "--model", "b/c", "--api-key", "secret") as simulator:
        key = {"authorization": "Bearer secret"}
        listed = simulator.client.get("/v1/models", headers=key).json()["data"]
        assert [model["id"] for model in listed] == ["a", "b/c"]
        assert simulator.post({**ask("hi"), "model": "b/c"}, headers=key).status_code == 200
        unknown = simulator.post({**ask("hi"), "model": "d"}, headers=key)
        assert unknown.status_code == 404
        assert unknown.json()["error"]["code"] == "model_not_found"
        for headers in ({}, {"authorization": "Bearer wrong"}):
            refused = simulator.post(ask("hi"), headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "authentication_error"


def test_it_keeps_a_log_of_its_requests(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    with running_simulator("--record", str(record)) as simulator:
        chunks = simulator.stream("say: one two three", user="u")
        simulator.post(ask("hi", temperature=9))
        entry, refused = simulator.requests()
        assert simulator.client.delete("/sim/requests").status_code == 204
        assert simulator.requests() == []
    body = entry.pop("body")
    assert body["messages"] == ask("say: one two three")["messages"]
    assert entry["id"] == chunks[0]["id"]
    assert entry["model"] == "test"
    assert entry["prompt_tokens"] == chunks[-1]["usage"]["prompt_tokens"]
    assert (entry["stream"], entry["produced_tokens"], entry["sent_frames"]) == (True, 3, 6)
    assert (entry["aborted"], entry["fault"], entry["status"]) == (False, None, 200)
    assert entry["received_fields"] == ["messages", "model", "stream", "stream_options", "user"]
    assert "content-type" in entry["received_headers"]
    assert refused["status"] == 400
    recorded = [json.loads(line) for line in record.read_text().splitlines()]
    text = ask("say: one two three")["messages"][-1]["content"]
    assert recorded[0].pop("prompt_sha256") == sha256(text.encode()).hexdigest()
    del entry["prompt_sha256"]
    del recorded[1]["prompt_sha256"]
    del refused["prompt_sha256"]
    assert recorded == [entry, {key: value for key, value in refused.items() if key != "body"}]


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_disconnects_is_logged_at_once(
    simulator: RunningSimulator, stream: bool
) -> None:
    simulator.forget_requests()
    with simulator.connect("hi [[sim tokens=1000 pace=20]]", stream=stream) as connection:
        if stream:
            while b"content" not in connection.recv(65536):
                pass
        else:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
    until(lambda: len(simulator.requests()) == 1)
    entry = simulator.last_request()
    assert entry["aborted"]
    assert 0 < entry["produced_tokens"] < 1000


def test_a_client_that_disconnects_after_the_end_did_not_abort(simulator: RunningSimulator) -> None:
    simulator.forget_requests()
    for _ in range(20):
        simulator.raw("hi [[sim tokens=3]]", stream=True)
    assert [entry["aborted"] for entry in simulator.requests()] == [False] * 20


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_on_a_signal_even_with_a_stream_open(number: signal.Signals) -> None:
    with running_simulator() as simulator:
        with simulator.connect("hi [[sim tokens=1000 pace=10]]", stream=True) as connection:
            assert connection.recv(65536)
            simulator.process.send_signal(number)
            assert simulator.process.wait(60) == 0
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", simulator.port), 1).close()
