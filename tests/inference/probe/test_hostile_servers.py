"""A probe ends, with words, whatever the other end is or does."""

from __future__ import annotations

import json

import pytest

from inference.probe import chat
from inference.probe.client import LARGEST_ANSWER, ProbeClient, ProbeError, Target
from inference.probe.findings import Found, ServerFindings
from inference.probe.run import probe
from tests.support.model_servers.dialects import Dialect, saying, serving

SILENCE = 0.5
"""Seconds; where nothing comes in any case."""
PATIENCE = 20.0


async def found(address: str, seconds: float = PATIENCE) -> ServerFindings:
    return await probe(Target(address, seconds=seconds))


def http(
    body: bytes, status: str = "200 OK", kind: str = "application/json", more: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (http(b"<html>hello</html>", kind="text/html"), "no OpenAI-compatible server"),
        (http(b"not here", "404 Not Found", "text/plain"), "no OpenAI-compatible server"),
        (http(b'{"hello": "world"}'), "the JSON is no list of models"),
        (http(b"[" * 100_000), "its answer is no JSON"),
        (http(b"\xff\xfe\x00"), "its answer is no JSON"),
        (http(b"", "302 Found", more="Location: http://elsewhere/v1\r\n"), "http://elsewhere/v1"),
        (http(b"x", more="Content-Encoding: gzip\r\n"), "it compresses its answers"),
    ],
    ids=["ssh", "web", "404", "other API", "deep", "bytes", "redirect", "gzip"],
)
async def test_what_is_no_model_server_is_told(answer: bytes, words: str) -> None:
    async with saying(answer) as address:
        seen = await found(address)

    assert seen.connection.value is False
    assert words in seen.connection.words


@pytest.mark.parametrize("answer", [b"", http(b"{}")[:-1]], ids=["silent", "half"])
async def test_a_server_that_falls_silent_is_given_up(answer: bytes) -> None:
    async with saying(answer) as address:
        seen = await found(address, SILENCE)

    assert f"no answer within {SILENCE:g} s" in seen.connection.words


async def test_an_address_that_is_never_connected_to_is_told() -> None:
    seen = await found("http://169.254.169.254")

    assert "Link-local" in seen.connection.words


async def test_a_list_without_an_end_is_left() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    async with saying(head, endless=b"[" * 65_536) as address:
        seen = await found(address)

    assert f"longer than {LARGEST_ANSWER // 2**20} MiB" in seen.connection.words


@pytest.mark.parametrize(
    "answer",
    [
        http(b'{"error": "bad key sk-0123456789, as in Bearer sk-0123456789"}', "400 No"),
        http(b"", "302 Found", more="Location: http://elsewhere/v1?key=sk-0123456789\r\n"),
    ],
    ids=["error", "redirect"],
)
async def test_the_key_is_not_in_what_a_server_is_quoted_with(answer: bytes) -> None:
    headers = {"Authorization": "Bearer sk-0123456789"}
    async with saying(answer) as address:
        seen = await probe(Target(address, headers=headers, has_key=True, seconds=PATIENCE))

    assert "[secret]" in seen.connection.words
    assert "sk-0123456789" not in str(seen)


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "endless", "words"),
    [
        (STREAM, b"x" * 65_536, "longer than 1 MiB"),
        (STREAM, b": wait\n\n" * 9000, "longer than 4 MiB"),
        (STREAM + b"data: {x\n\n", b"", "no JSON"),
        (STREAM + b"data: [1]\n\n", b"", "no JSON object"),
        (STREAM + b'data: {"error": "out of memory"}\n\n', b"", "out of memory"),
        (STREAM + b"data: [DONE]\n\n", b"", "no events"),
        (http(json.dumps({"choices": []}).encode()), b"", "it sends application/json"),
    ],
    ids=["event", "stream", "garbage", "list", "error", "empty", "whole"],
)
async def test_what_is_no_stream_is_told(answer: bytes, endless: bytes, words: str) -> None:
    async with saying(answer, endless=endless) as address:
        seen = await _chat_at(address)

    assert seen.value is False
    assert words in seen.words


async def _chat_at(address: str) -> Found[bool]:
    """What is said of a stream from a server that says the same to everything."""
    async with ProbeClient(Target(address, seconds=PATIENCE)) as client:
        try:
            stream, _ = await chat.streamed(chat.Model(client, "demo"))
        except ProbeError as error:
            return Found(False, str(error))
    return stream


async def test_a_server_whose_streams_fall_silent_is_waited_for_once() -> None:
    async with serving(Dialect(word_seconds=60)) as server:
        seen = await found(server.root, 3)

    (model,) = seen.models
    assert model.chat.value is True
    assert (model.stream.value, model.works) == (False, False)
    assert model.stream.words == "no answer within 3 s"
    assert (model.output_cap.value, model.abort.value) == (None, None)
    assert model.structured_output.value is True
    assert sum(1 for body in server.bodies if body.get("stream")) == 1
    assert seen.keep_alive.value is None


async def test_one_step_that_fails_hides_no_other() -> None:
    async with serving(Dialect(refused_choices=frozenset({"named", "required", "auto"}))) as server:
        (model,) = (await found(server.root)).models

    assert model.tool_calling.value is False
    assert "refused" in model.tool_calling.words
    assert model.structured_output.value is True
    assert model.abort.value is True


async def test_a_server_that_does_not_outlive_a_hang_up_is_told() -> None:
    async with serving(Dialect(dies_of="Count from 1 to 500")) as server:
        (model,) = (await found(server.root)).models

    assert model.works
    assert model.abort.value is False
    assert "the next request fails" in model.abort.words


async def test_a_probe_that_may_take_so_long_ends_then_and_says_so_of_each_model() -> None:
    slow = Dialect(models=[{"id": "one"}, {"id": "two"}], word_seconds=60)
    async with serving(slow) as server:
        findings = await probe(Target(server.root), seconds=SILENCE)

    assert [model.name for model in findings.models] == ["one", "two"]
    for model in findings.models:
        assert not model.works
        assert model.chat.words == f"not known, because the probe was ended after {SILENCE} s"
