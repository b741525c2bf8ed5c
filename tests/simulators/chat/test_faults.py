"""Every fault of the simulator, as a client sees it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from simulators.chat.faults import STATUSES, FaultName, parse_faults
from tests.support.model_servers.simulator import (
    RunningSimulator,
    ask,
    frames,
    read_to_end,
    running_simulator,
)
from tests.support.until import until

ROOT = Path(__file__).resolve().parents[3]
SAID = "say: one two three four"


def faulty(fault: str) -> str:
    return f"{SAID} [[sim fault={fault}]]"


def received_until(error: type[OSError], connection: socket.socket) -> bytes:
    """Return the bytes that arrive before ``error``, which must be raised."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except error:
        return received
    pytest.fail(f"the connection ended without a {error.__name__}")


def spoken(payloads: list[str]) -> str:
    chunks = [json.loads(payload) for payload in payloads if payload.startswith("{")]
    deltas = (c["choices"][0]["delta"] for c in chunks if c.get("choices"))
    return "".join(delta.get("content", "") for delta in deltas)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", STATUSES)
def test_status_is_answered_early_with_an_error_body(
    simulator: RunningSimulator, status: int, stream: bool
) -> None:
    response = simulator.post(ask(faulty(f"status={status}"), stream=stream))
    assert response.status_code == status
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}
    assert simulator.last_request()["status"] == status


def test_slow_header_delays_the_headers(simulator: RunningSimulator) -> None:
    with simulator.connect(faulty("slow_header=2"), stream=True) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(60)
        assert connection.recv(9) == b"HTTP/1.1 "


def test_redirect_points_elsewhere(simulator: RunningSimulator) -> None:
    response = simulator.post(ask(faulty("redirect")), follow_redirects=False)
    assert response.status_code == 302
    assert response.headers["location"].startswith("http://127.0.0.1:1/")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "body", "content_type"),
    [
        ("html", b"<html>", "text/html"),
        ("empty", b"", ""),
        ("null", b"null", "application/json"),
        ("error_200", b'{"error":{', "application/json"),
    ],
)
def test_a_200_is_not_always_an_answer(
    simulator: RunningSimulator, fault: str, body: bytes, content_type: str, stream: bool
) -> None:
    response = simulator.post(ask(faulty(fault), stream=stream))
    assert response.status_code == 200
    assert response.content.startswith(body)
    assert response.content or fault == "empty"
    assert response.headers["content-type"].startswith(content_type)


@pytest.mark.parametrize("stream", [True, False])
def test_cut_and_reset_end_the_connection_before_the_headers(
    simulator: RunningSimulator, stream: bool
) -> None:
    assert simulator.raw(faulty("cut"), stream=stream) == b""
    assert not simulator.last_request()["aborted"]
    with pytest.raises(ConnectionResetError):
        simulator.raw(faulty("reset"), stream=stream)


@pytest.mark.parametrize("stream", [True, False])
def test_hang_sends_nothing_until_the_client_disconnects(
    simulator: RunningSimulator, stream: bool
) -> None:
    simulator.forget_requests()
    with simulator.connect(faulty("hang"), stream=stream) as connection:
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    until(lambda: len(simulator.requests()) == 1)
    assert simulator.last_request()["aborted"]


@pytest.mark.parametrize(("after", "said"), [(0, ""), (2, "one two"), (99, "one two three four")])
def test_cut_closes_a_stream_after_its_number_of_frames(
    simulator: RunningSimulator, after: int, said: str
) -> None:
    raw = simulator.raw(faulty(f"cut@{after}"), stream=True)
    assert spoken(frames(raw.decode())) == said
    assert not raw.endswith(b"0\r\n\r\n")
    entry = simulator.last_request()
    assert (entry["fault"], entry["aborted"]) == (f"cut@{after}", False)
    assert entry["produced_tokens"] == min(after, 4)
    assert entry["sent_frames"] == min(after, 4) + 1


def test_hang_falls_silent_after_its_number_of_frames(simulator: RunningSimulator) -> None:
    simulator.forget_requests()
    with simulator.connect(faulty("hang@2"), stream=True) as connection:
        connection.settimeout(2)
        received = received_until(TimeoutError, connection)
    assert spoken(frames(received.decode())) == "one two"
    until(lambda: len(simulator.requests()) == 1)
    assert simulator.last_request()["aborted"]
    assert simulator.last_request()["produced_tokens"] == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [("cut@1", None), ("reset@1", ConnectionResetError), ("hang@1", TimeoutError)],
)
def test_a_whole_answer_breaks_in_its_middle(
    simulator: RunningSimulator, fault: str, error: type[OSError] | None
) -> None:
    with simulator.connect(faulty(fault)) as connection:
        connection.settimeout(3)
        received = received_until(error, connection) if error else read_to_end(connection)
    headers, _, body = received.partition(b"\r\n\r\n")
    promised = re.search(rb"content-length: (\d+)", headers)
    assert promised is not None
    assert 0 < len(body) < int(promised[1])


USAGES: dict[str, tuple[list[int | None], int | None]] = {
    "no_usage": ([None] * 6, None),
    "usage_twice": ([None] * 6 + [4, 4], 4),
    "negative_usage": ([None] * 6 + [-5], -5),
    "decreasing_usage": ([1000, 999, 998, 997, 996, 996, 4], 4),
    "absurd_usage": ([None] * 6 + [10**12 + 4], 10**12 + 4),
    "usage_every_chunk": ([0, 1, 2, 3, 4, 4, 4], 4),
}
"""``completion_tokens`` of each chunk, None where it has no usage; and those of a whole answer."""


@pytest.mark.parametrize("fault", USAGES)
def test_usage_is_reported_wrongly(simulator: RunningSimulator, fault: str) -> None:
    streamed, whole = USAGES[fault]
    chunks = simulator.stream(faulty(fault))
    assert [chunk.get("usage", {}).get("completion_tokens") for chunk in chunks] == streamed
    assert simulator.chat(faulty(fault)).get("usage", {}).get("completion_tokens") == whole


STREAMS: dict[str, Callable[[list[str], str], bool]] = {
    "garbage@2": lambda payloads, _: not payloads[3].endswith("}") and len(payloads) == 8,
    "error_frame@1": lambda payloads, _: json.loads(payloads[2])["error"]["code"] == 500,
    "no_finish": lambda _, text: "[DONE]" in text and '"stop"' not in text,
    "no_done": lambda _, text: '"stop"' in text and "[DONE]" not in text,
    "after_done": lambda payloads, _: payloads[-2] == "[DONE]",
    "repeat_role": lambda payloads, _: sum("assistant" in each for each in payloads) == 5,
    "empty_choices_first": lambda payloads, _: json.loads(payloads[0])["choices"] == [],
    "crlf": lambda _, text: text.count("\n") == text.count("\r\n") > 0,
    "comments": lambda payloads, text: text.count(": keep-alive\n\n") == len(payloads),
    "bom": lambda _, text: text.startswith("\ufeff"),
    "big_frame": lambda payloads, _: sum(len(each) > 2 * 1024 * 1024 for each in payloads) == 1,
}
"""What a stream with each fault shows, by its payloads and its text."""


@pytest.mark.parametrize("fault", STREAMS)
def test_a_stream_shows_its_fault(simulator: RunningSimulator, fault: str) -> None:
    text = simulator.post(ask(faulty(fault), stream=True)).content.decode()
    assert STREAMS[fault](frames(text.removeprefix("\ufeff")), text)


@pytest.mark.parametrize("stream", [True, False])
def test_split_bytes_writes_byte_by_byte(simulator: RunningSimulator, stream: bool) -> None:
    body = simulator.raw(faulty("split_bytes"), stream=stream).partition(b"\r\n\r\n")[2]
    sizes_and_bytes = re.fullmatch(rb"((?:1\r\n.\r\n)+)0\r\n\r\n", body, re.DOTALL)
    assert sizes_and_bytes is not None
    assert b"three" in sizes_and_bytes[1][3::6]


def test_faults_can_be_combined(simulator: RunningSimulator) -> None:
    raw = simulator.raw(faulty("usage_every_chunk,crlf,cut@1"), stream=True)
    *_, last = frames(raw.decode())
    assert json.loads(last)["usage"]["completion_tokens"] == 1
    assert b"}\r\n\r\n" in raw


@pytest.mark.long
def test_a_fault_of_the_command_line_can_be_lifted_by_a_request() -> None:
    with running_simulator("--fault", "status=503") as simulator:
        assert simulator.post(ask("hello")).status_code == 503
        assert simulator.chat("hello [[sim fault=none]]")["object"] == "chat.completion"
        assert [entry["fault"] for entry in simulator.requests()] == ["status=503", None]


def test_the_simulator_goes_on_after_every_fault(simulator: RunningSimulator) -> None:
    numbers = {"status": "@503", "slow_header": "@0.1", "garbage": "@1", "error_frame": "@1"}
    for fault in FaultName:
        body = ask(faulty(fault + numbers.get(fault, "")), stream=True)
        try:
            simulator.client.post("/v1/chat/completions", json=body, timeout=0.5)
        except httpx2.TransportError:
            continue
    assert simulator.chat("say: still here")["choices"][0]["message"]["content"] == "still here"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sad", "no fault 'sad'"),
        ("status", "needs a number"),
        ("status=418", "takes one of 400"),
        ("html@3", "takes no number"),
        ("cut@-1", "zero or more"),
        ("cut@nan", "zero or more"),
        ("slow_header=x", "zero or more"),
    ],
)
def test_a_wrong_fault_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_faults(text)


@pytest.mark.parametrize("fault", FaultName)
def test_every_fault_is_documented(fault: FaultName) -> None:
    page = (ROOT / "docs" / "develop" / "simulator.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{fault}[`@=]", page, re.MULTILINE)
