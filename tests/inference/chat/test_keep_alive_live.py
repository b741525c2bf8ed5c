"""Keep-alive comments in streams of a running gateway, and the rows of these requests."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from inference.models import ModelEntry
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway, events
from tests.support.live_catalog import backend, publish
from tests.support.model_servers.scripted import (
    DONE,
    GOOD,
    TOKENS,
    Pause,
    Script,
    ScriptedServer,
    body,
    scripted_server,
    stream,
)
from tests.support.until import until
from usage.models import UsageRow

COMMENT = ": keep-alive\n\n"
SILENT = 2.6
"""Seconds before a first token: two comments, with room for a busy machine."""


@dataclass
class Answer:
    """What a client received, and when its first byte came, in seconds."""

    status: int
    headers: httpx2.Headers
    text: str
    first: float

    @property
    def comments(self) -> int:
        return self.text.count(COMMENT)

    @property
    def frames(self) -> list[Any]:
        """The events without the comments, which stand between whole frames."""
        return events(self.text.replace(COMMENT, ""))


def ask(gateway: Gateway, model: str, text: str, **fields: Any) -> Answer:
    began = time.monotonic()
    first = None
    read = b""
    asked = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True}
    with httpx2.stream(
        "POST",
        f"{gateway.base_url}/chat/completions",
        json={**asked, **fields},
        headers=gateway.headers,
        timeout=60,
        verify=NO_TLS,
    ) as answer:
        for piece in answer.iter_raw():
            first = first or time.monotonic() - began
            read += piece
    return Answer(answer.status_code, answer.headers, read.decode(), first or 0.0)


def commented(gateway: Gateway, **columns: Any) -> ModelEntry:
    """A model with comments after a second of silence, on a backend of the simulator."""
    return publish(gateway, backend(gateway, **columns), keep_alive_seconds=1)


def facts(row: UsageRow) -> tuple[Any, ...]:
    """What a row says, without its times and ids."""
    return (
        row.outcome,
        row.http_status,
        row.error_code,
        row.backend_reported_input_tokens,
        row.backend_reported_output_tokens,
        row.generated_output_tokens,
        row.delivered_output_tokens,
        row.input_price_per_mtok,
    )


def test_a_late_first_token_is_waited_for_with_comments(gateway: Gateway) -> None:
    text = f"[[sim first={SILENT} tokens=3]] {uuid.uuid4()}"
    with_comments = ask(gateway, commented(gateway).identifier, text)
    without = ask(gateway, publish(gateway, backend(gateway)).identifier, text)

    assert with_comments.text.startswith(COMMENT), "the head came with it"
    assert 1 <= with_comments.first < SILENT
    assert with_comments.comments >= 2
    assert without.comments == 0
    assert without.first >= SILENT
    assert with_comments.frames[-1] == without.frames[-1] == DONE
    assert len(with_comments.frames) == len(without.frames)
    names = set(without.headers)
    assert set(with_comments.headers) == names
    assert with_comments.headers["content-type"] == "text/event-stream; charset=utf-8"

    rows = [gateway.row(each.headers["x-request-id"]) for each in (with_comments, without)]
    assert facts(rows[0]) == facts(rows[1])
    assert (rows[0].outcome, rows[0].http_status) == ("success", 200)
    for row in rows:
        assert row.time_to_first_token_ms is not None
        assert row.time_to_first_token_ms >= SILENT * 1000, "a comment is no token"


def test_a_pause_within_an_answer_is_commented_too(gateway: Gateway) -> None:
    answer = ask(gateway, commented(gateway).identifier, "[[sim tokens=3 pace=0.4]] slowly")

    head, *pauses = answer.text.split(COMMENT)
    assert head.startswith("data: ")
    assert len(pauses) >= 3
    assert all(each == "" or each.startswith("data: ") for each in pauses)
    assert answer.frames[-1] == DONE


def test_when_every_server_refuses_after_a_comment_the_failure_is_in_band(
    gateway: Gateway, servers: Callable[[], ScriptedServer]
) -> None:
    full, refuses = [servers(), servers()], Script([Pause(1.5), body(b"{}", 503)])
    for each in full:
        each.say(refuses, refuses)
    on = [backend(gateway, base_url=each.base_url, running_usage="none") for each in full]
    model = publish(gateway, *on, keep_alive_seconds=1).identifier

    answer = ask(gateway, model, "Hello.")

    assert answer.status == 200
    assert answer.text.startswith(COMMENT)
    assert [each["error"]["code"] for each in answer.frames] == ["server_overloaded"]
    row = gateway.row(answer.headers["x-request-id"])
    assert (row.outcome, row.error_code) == ("backend_unavailable", "server_overloaded")
    assert (row.http_status, row.time_to_first_token_ms) == (200, 0)
    assert (row.backend_reported_output_tokens, row.generated_output_tokens) == (0, 0)


def test_a_whole_answer_has_none(gateway: Gateway) -> None:
    model = commented(gateway).identifier
    answer = ask(gateway, model, f"[[sim first={SILENT} tokens=3]]", stream=False)

    assert json.loads(answer.text)["object"] == "chat.completion"


def test_openais_sdk_reads_through_them(gateway: Gateway) -> None:
    model = commented(gateway).identifier
    with gateway.openai() as client:
        chunks = list(
            client.chat.completions.create(
                model=model,
                messages=[{"role": "user", "content": f"[[sim first={SILENT}]] say: hello"}],
                stream=True,
            )
        )

    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == (
        "hello"
    )


@pytest.fixture
def servers() -> Iterator[Callable[[], ScriptedServer]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(scripted_server())


@pytest.mark.parametrize(
    ("pause", "timeout", "status", "code"),
    [
        pytest.param(1.5, None, 200, "backend_error", id="after"),
        pytest.param(20, 1.5, 200, "backend_timeout", id="a first token that never comes"),
        pytest.param(0, None, 500, "backend_error", id="before"),
    ],
)
def test_a_failure_after_the_first_comment_is_in_band_and_before_it_has_its_status(
    gateway: Gateway,
    servers: Callable[[], ScriptedServer],
    pause: float,
    timeout: float | None,
    status: int,
    code: str,
) -> None:
    server = servers()
    server.say(Script([Pause(pause), body(b"{}", 500)]), Script([]))
    columns = {"running_usage": "none", "first_byte_seconds": timeout}
    model = commented(gateway, base_url=server.base_url, **columns)

    answer = ask(gateway, model.identifier, "Hello.")

    assert answer.status == status
    assert answer.text.startswith(COMMENT) is (status == 200)
    (told,) = answer.frames if status == 200 else [json.loads(answer.text)]
    assert told["error"]["code"] == code
    row = gateway.row(answer.headers["x-request-id"])
    assert (row.outcome, row.error_code, row.http_status) == (code, code, status)
    assert (row.backend_reported_output_tokens, row.generated_output_tokens) == (0, 0)
    assert row.time_to_first_token_ms == 0, "a comment is no token"


def test_a_retry_after_a_comment_is_answered_by_the_second_server(
    gateway: Gateway, servers: Callable[[], ScriptedServer]
) -> None:
    full, good = servers(), servers()
    full.say(Script([Pause(1.5), body(b"{}", 503)]), Script([]))
    good.say(Script([Pause(1.0), *stream(*GOOD)], TOKENS), Script([]))
    rows = []
    for seconds in (1, None):
        backends = [
            backend(gateway, base_url=each.base_url, running_usage="none") for each in (full, good)
        ]
        # One after the other takes the first free turn: ask until the full one was asked first.
        model = publish(gateway, *backends, keep_alive_seconds=seconds).identifier

        def retried(model: str = model) -> Answer | None:
            before = len(full.requests())
            answer = ask(gateway, model, "Hello.")
            return answer if len(full.requests()) > before else None

        answer = until(retried)
        assert answer.comments >= 2 if seconds else not answer.comments
        assert answer.frames[-1] == DONE
        rows.append(gateway.row(answer.headers["x-request-id"]))
    assert facts(rows[0]) == facts(rows[1])
    assert (rows[0].outcome, rows[0].http_status) == ("success", 200)


def test_waiting_for_a_slot_is_silence_too(gateway: Gateway) -> None:
    model = commented(gateway, max_concurrency=1, running_usage="vllm").identifier
    with RawClient(gateway) as holder:
        holder.chat("[[sim tokens=300 pace=10]] slowly", model, stream=True)
        holder.read_until(1, b"data: ")
        began = time.monotonic()
        answer = ask(gateway, model, "Hello.")
        waited = time.monotonic() - began
        assert holder.read(), "the holder was not cut"

    assert waited >= 5, "the queue's own timeout goes on"
    assert answer.status == 200
    assert answer.comments in (4, 5)
    (frame,) = answer.frames
    assert frame["error"]["code"] == "server_overloaded"
    (row,) = gateway.rows_when(1)
    assert row.request_id != answer.headers["x-request-id"], "it was not admitted: no row"


def test_a_client_that_leaves_in_the_silence_has_left(gateway: Gateway) -> None:
    model = commented(gateway, running_usage="none", disconnect_drain_seconds=0).identifier
    with RawClient(gateway) as client:
        client.chat("[[sim first=20 tokens=3]]", model, stream=True)
        client.read_until(1, COMMENT.encode())

    row = gateway.row(client.request_id)
    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.delivered_output_tokens == 0
