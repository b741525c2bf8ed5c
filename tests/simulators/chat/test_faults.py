"""Every fault of the simulator, as a client sees it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def simulator() -> Iterator[RunningSimulator]:
    with running_simulator() as running:
        yield running


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


def usages(simulator: RunningSimulator, fault: str, **options: bool) -> list[int | None]:
    """Return ``completion_tokens`` of each chunk; None where a chunk has no usage."""
    chunks = simulator.stream(faulty(fault), stream_options={"include_usage": True, **options})
    return [chunk.get("usage", {}).get("completion_tokens") for chunk in chunks]


def whole_usage(simulator: RunningSimulator, fault: str) -> dict[str, int] | None:
    usage: dict[str, int] | None = simulator.chat(faulty(fault)).get("usage")
    return usage


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
def test_cut_closes_the_connection_before_the_headers(
    simulator: RunningSimulator, stream: bool
) -> None:
    assert simulator.raw(faulty("cut"), stream=stream) == b""
    assert not simulator.last_request()["aborted"]


@pytest.mark.parametrize("stream", [True, False])
def test_reset_resets_the_connection_before_the_headers(
    simulator: RunningSimulator, stream: bool
) -> None:
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


def test_reset_resets_a_stream_after_its_number_of_frames(simulator: RunningSimulator) -> None:
    with simulator.connect(faulty("reset@2"), stream=True) as connection:
        received = received_until(ConnectionResetError, connection)
    assert spoken(frames(received.decode())) == "one two"


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


def test_garbage_is_one_frame_that_is_no_json(simulator: RunningSimulator) -> None:
    response = simulator.post(ask(faulty("garbage@2"), stream=True))
    payloads = frames(response.text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(payloads.pop(3))
    assert spoken(payloads) == "one two three four"
    with pytest.raises(json.JSONDecodeError):
        simulator.post(ask(faulty("garbage@2"))).json()


def test_error_frame_is_a_vllm_error_in_the_stream(simulator: RunningSimulator) -> None:
    response = simulator.post(ask(faulty("error_frame@1"), stream=True))
    *before, error, done = frames(response.text)
    assert spoken(before) == "one"
    assert json.loads(error)["error"]["code"] == 500
    assert done == "[DONE]"


def test_no_usage_reports_none(simulator: RunningSimulator) -> None:
    assert usages(simulator, "no_usage", continuous_usage_stats=True) == [None] * 6
    assert whole_usage(simulator, "no_usage") is None


def test_usage_twice_reports_it_twice(simulator: RunningSimulator) -> None:
    assert usages(simulator, "usage_twice") == [None] * 6 + [4, 4]


def test_negative_usage_is_below_zero(simulator: RunningSimulator) -> None:
    assert usages(simulator, "negative_usage")[-1] == -5
    assert (whole_usage(simulator, "negative_usage") or {})["completion_tokens"] == -5


def test_decreasing_usage_goes_down(simulator: RunningSimulator) -> None:
    assert usages(simulator, "decreasing_usage") == [1000, 999, 998, 997, 996, 996, 4]


def test_absurd_usage_is_far_too_high(simulator: RunningSimulator) -> None:
    assert usages(simulator, "absurd_usage")[-1] == 10**12 + 4
    assert (whole_usage(simulator, "absurd_usage") or {})["completion_tokens"] > 10**12


def test_usage_every_chunk_comes_without_a_request(simulator: RunningSimulator) -> None:
    chunks = simulator.stream(faulty("usage_every_chunk"), stream_options=None)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [0, 1, 2, 3, 4, 4]


def test_no_finish_leaves_the_reason_out(simulator: RunningSimulator) -> None:
    chunks = simulator.stream(faulty("no_finish"))
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks[:-1])
    assert simulator.chat(faulty("no_finish"))["choices"][0]["finish_reason"] is None


def test_no_done_ends_without_the_marker(simulator: RunningSimulator) -> None:
    body = ask(faulty("no_done"), stream=True, stream_options={"include_usage": True})
    last = frames(simulator.post(body).text)[-1]
    assert json.loads(last)["usage"]["completion_tokens"] == 4


def test_after_done_more_follows(simulator: RunningSimulator) -> None:
    payloads = frames(simulator.post(ask(faulty("after_done"), stream=True)).text)
    assert payloads[-2] == "[DONE]"
    assert json.loads(payloads[-1])["choices"] == []


def test_repeat_role_names_it_in_every_delta(simulator: RunningSimulator) -> None:
    chunks = simulator.stream(faulty("repeat_role"))
    assert [c["choices"][0]["delta"].get("role") for c in chunks[:5]] == ["assistant"] * 5


def test_empty_choices_first_come_before_the_role(simulator: RunningSimulator) -> None:
    first, second, *_ = simulator.stream(faulty("empty_choices_first"))
    assert first["choices"] == []
    assert second["choices"][0]["delta"]["role"] == "assistant"


@pytest.mark.parametrize("stream", [True, False])
def test_split_bytes_writes_byte_by_byte(simulator: RunningSimulator, stream: bool) -> None:
    body = simulator.raw(faulty("split_bytes"), stream=stream).partition(b"\r\n\r\n")[2]
    sizes_and_bytes = re.fullmatch(rb"((?:1\r\n.\r\n)+)0\r\n\r\n", body, re.DOTALL)
    assert sizes_and_bytes is not None
    assert b"three" in sizes_and_bytes[1][3::6]


def test_crlf_ends_its_lines_with_both(simulator: RunningSimulator) -> None:
    content = simulator.post(ask(faulty("crlf"), stream=True)).content
    assert content.endswith(b"data: [DONE]\r\n\r\n")
    assert content.count(b"\n") == content.count(b"\r\n")


def test_comments_stand_between_the_frames(simulator: RunningSimulator) -> None:
    text = simulator.post(ask(faulty("comments"), stream=True)).text
    assert text.count(": keep-alive\n\n") == len(frames(text))


@pytest.mark.parametrize("stream", [True, False])
def test_bom_opens_the_body(simulator: RunningSimulator, stream: bool) -> None:
    content = simulator.post(ask(faulty("bom"), stream=stream)).content
    assert content.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("stream", [True, False])
def test_big_frame_is_two_mebibytes(simulator: RunningSimulator, stream: bool) -> None:
    text = simulator.post(ask(faulty("big_frame"), stream=stream)).text
    sizes = [len(payload) for payload in (frames(text) if stream else [text])]
    assert [size for size in sizes if size > 2 * 1024 * 1024] == [max(sizes)]


def test_faults_can_be_combined(simulator: RunningSimulator) -> None:
    raw = simulator.raw(faulty("usage_every_chunk,crlf,cut@1"), stream=True)
    *_, last = frames(raw.decode())
    assert json.loads(last)["usage"]["completion_tokens"] == 1
    assert b"}\r\n\r\n" in raw


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
