"""Any answer, in any pieces: a valid one is read as it was written, and no other one hangs or surprises."""

from __future__ import annotations

import asyncio
import http.client
import io
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.http_client.connection import LARGEST_BUFFER, Connection
from core.http_client.request import HttpError, Origin, ServerDisconnected, WriteError
from tests.support.servers.scripted import LAST_CHUNK, chunk

LIMIT = 1_000_000


class Wire:
    """A transport in memory: the test feeds the connection, and reads what became of it."""

    def __init__(self) -> None:
        self.closing = False
        self.paused = False
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False


@dataclass
class Outcome:
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    error: HttpError | None = None
    kept: bool = False


async def played(pieces: list[bytes], *, eof: bool) -> Outcome:
    """Feed ``pieces`` to a connection that has sent a request, and read its answer."""
    outcome, wire = Outcome(), Wire()
    idle: list[Connection] = []
    loop = asyncio.get_running_loop()
    connection = Connection(Origin("h", 80, False), loop, idle.append, lambda _: None)
    connection.connection_made(cast(Any, wire))

    async def ask() -> None:
        try:
            response = await connection.exchange(b"POST / HTTP/1.1\r\n\r\n", b"", inf)
            outcome.status, outcome.headers = response.status, response.headers
            while part := await response.read():
                outcome.body += part
        except HttpError as error:
            outcome.error = error

    asking = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    for piece in pieces:
        if wire.closing:
            break
        connection.data_received(piece)
        await asyncio.sleep(0)
    if eof and not wire.closing:
        connection.eof_received()
        connection.connection_lost(None)
    if eof or wire.closing:
        await asyncio.wait_for(asking, 60)
    else:
        for _ in range(5):
            await asyncio.sleep(0)
        if not asking.done():
            connection.abort()
            await asyncio.wait_for(asking, 60)
    outcome.kept = bool(idle) and not connection.closed
    return outcome


TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-_!", min_size=1, max_size=20)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=40)
FRAMING = {"connection", "content-length", "transfer-encoding", "upgrade", "trailer"}
HEADERS = st.lists(
    st.tuples(TOKEN.filter(lambda name: name.lower() not in FRAMING), VALUE), max_size=8
)
BODY = st.binary(max_size=2000)


@dataclass(frozen=True)
class Answer:
    """A valid answer; ``framing`` is ``sized``, ``chunked`` or ``until the end``."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    framing: str
    cuts: list[int]
    trailers: list[tuple[str, str]]
    interim: int
    close: bool

    @property
    def is_empty(self) -> bool:
        return self.status in (204, 304)

    @property
    def kept(self) -> bool:
        return not self.close and (self.is_empty or self.framing != "until the end")

    def render(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Some Words"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.close:
            lines.append("Connection: close")
        body = b"" if self.is_empty else self.body
        if self.framing == "sized":
            lines.append(f"Content-Length: {len(body)}")
        elif self.framing == "chunked" and not self.is_empty:
            lines.append("Transfer-Encoding: chunked")
            edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in self.cuts)})
            chunks = [body[a:b] for a, b in pairwise(edges)]
            trailers = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
            last = LAST_CHUNK[:3] + trailers.encode() + b"\r\n"
            body = b"".join(map(chunk, chunks)) + last
        interim = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * self.interim
        return interim + ("\r\n".join(lines) + "\r\n\r\n").encode() + body


ANSWERS = st.builds(
    Answer,
    status=st.sampled_from([200, 200, 200, 201, 204, 304, 400, 404, 429, 500, 503, 599]),
    headers=HEADERS,
    body=BODY,
    framing=st.sampled_from(["sized", "chunked", "until the end"]),
    cuts=st.lists(st.integers(0, 3000), max_size=6),
    trailers=HEADERS,
    interim=st.integers(0, 2),
    close=st.booleans(),
)
SPLITS = st.lists(st.integers(0, 4000), max_size=12)


def split(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(edges)]


class _Socket(io.BytesIO):
    def makefile(self, *_: object, **__: object) -> _Socket:
        return self


def read_by_the_standard_library(data: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    response = http.client.HTTPResponse(cast(Any, _Socket(data)), method="POST")
    response.begin()
    return response.status, response.getheaders(), response.read()


@given(ANSWERS, SPLITS)
def test_a_valid_answer_is_read_as_it_was_written(answer: Answer, places: list[int]) -> None:
    data = answer.render()
    eof = answer.framing == "until the end"
    outcome = asyncio.run(played(split(data, places), eof=eof and not answer.is_empty))

    assert outcome.error is None
    assert outcome.status == answer.status
    assert outcome.body == (b"" if answer.is_empty else answer.body)
    assert outcome.kept == answer.kept
    if not answer.interim:
        status, headers, body = read_by_the_standard_library(data)
        assert (status, body) == (outcome.status, outcome.body)
        known = [(name.lower().encode(), value.encode()) for name, value in headers]
        assert known == outcome.headers


def test_an_answer_may_come_a_byte_at_a_time() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = head + chunk(b"hello") + b"0\r\nx-sum: 1\r\n\r\n"
    outcome = asyncio.run(played([bytes([byte]) for byte in answer], eof=False))
    assert (outcome.error, outcome.body, outcome.kept) == (None, b"hello", True)


@given(ANSWERS, SPLITS, st.data())
def test_a_damaged_answer_neither_hangs_nor_surprises(
    answer: Answer, places: list[int], data: st.DataObject
) -> None:
    sent = bytearray(answer.render())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(sent)))
        kind = data.draw(st.sampled_from(["change", "remove", "insert", "cut", "repeat"]))
        if kind == "change" and place < len(sent):
            sent[place] = data.draw(st.integers(0, 255))
        elif kind == "remove":
            del sent[place : place + data.draw(st.integers(1, 20))]
        elif kind == "insert":
            sent[place:place] = data.draw(st.binary(max_size=20))
        elif kind == "cut":
            del sent[place:]
        else:
            sent += sent[: data.draw(st.integers(0, 100))]
    outcome = asyncio.run(played(split(bytes(sent), places), eof=True))

    assert outcome.error is not None or 200 <= outcome.status <= 999
    assert not outcome.kept, "an ended connection is not kept"


@given(st.binary(max_size=3000), SPLITS)
def test_any_bytes_end_in_an_answer_or_a_failure(data: bytes, places: list[int]) -> None:
    outcome = asyncio.run(played(split(data, places), eof=True))
    assert (outcome.error is None) == (outcome.status >= 200)


@pytest.mark.parametrize("size", [1, 128 * 1024, 128 * 1024 + 1, 512 * 1024])
async def test_a_request_cannot_have_run_only_while_a_part_of_it_is_held_back(size: int) -> None:
    head, body = b"POST / HTTP/1.1\r\n\r\n", b"x" * size
    outcomes = set()
    for turns in range(12):
        wire, loop = Wire(), asyncio.get_running_loop()
        connection = Connection(Origin("h", 80, False), loop, lambda _: None, lambda _: None)
        connection.connection_made(cast(Any, wire))
        asking = asyncio.ensure_future(connection.exchange(head, body, inf))
        for _ in range(turns + 1):
            await asyncio.sleep(0)
        handed_over = wire.written == head + body
        connection.eof_received()
        with pytest.raises(ServerDisconnected if handed_over else WriteError):
            await asking
        outcomes.add(handed_over)
    assert True in outcomes
    assert (False in outcomes) == (size > 128 * 1024)


@given(st.lists(st.integers(1, LARGEST_BUFFER), min_size=1, max_size=6))
def test_a_large_body_is_read_with_pauses(sizes: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % sum(sizes)
    outcome = asyncio.run(played([head, *(b"x" * size for size in sizes)], eof=False))
    assert len(outcome.body) == sum(sizes)
    assert outcome.kept
