"""When a silent stream is sent comments, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.placement.simulate import VirtualLoop
from core.asgi.http import Stoppable
from core.errors import ApiError, BackendTimeout
from inference.chat.keep_alive import COMMENT, Comments

SECONDS = 10.0


class Recorder:
    """A client that notes when it is sent what; ``slow`` is how long it takes to read frames."""

    def __init__(self) -> None:
        self.disconnected = self.backed_up = False
        self.status = 0
        self.slow = 0.0
        self.got: list[tuple[float, str]] = []

    def _note(self, what: str) -> None:
        self.status = 200
        self.got.append((round(asyncio.get_running_loop().time(), 3), what))

    def follow(self, exchange: Stoppable) -> None:
        """Do nothing: the script says what happens."""

    def admit(self) -> None:
        """Likewise."""

    def conclude(self) -> None:
        """Likewise."""

    async def send_comment(self, comment: bytes) -> None:
        assert comment == COMMENT == b": keep-alive\n\n"
        self._note("comment")

    async def send_frames(self, frames: bytes) -> None:
        await asyncio.sleep(self.slow)
        self._note(frames.decode())

    async def finish(self, last: bytes) -> None:
        self._note(last.decode())

    async def fail(self, error: ApiError) -> None:
        self._note("failed")


Script = Sequence[tuple[float, str]]


def played(script: Script, until: float) -> list[tuple[float, str]]:
    """What the client gets of ``script``: at which second what happens."""

    async def play() -> list[tuple[float, str]]:
        sink = Recorder()
        with Comments(sink, SECONDS, "req_test") as comments:
            for at, what in script:
                await asyncio.sleep(at - asyncio.get_running_loop().time())
                await happen(sink, comments, what)
            await asyncio.sleep(until - asyncio.get_running_loop().time())
        # A timer that outlives its request would be seen here.
        await asyncio.sleep(100 * SECONDS)
        return sink.got

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play())


async def happen(sink: Recorder, comments: Comments, what: str) -> None:
    name, _, value = what.partition("=")
    if name in ("slow", "backed_up", "disconnected"):
        setattr(sink, name, float(value) if name == "slow" else value == "yes")
    elif what == "conclude":
        comments.conclude()
    elif what == "end":
        await comments.finish(b"end")
    elif what == "fail":
        await comments.fail(BackendTimeout())
    else:
        await comments.send_frames(what.encode())


CASES: dict[str, tuple[Script, float, list[tuple[float, str]]]] = {
    "nothing comes": ((), 35, [(10, "comment"), (20, "comment"), (30, "comment")]),
    "an answer in time": (
        ((9.9, "a"), (19.8, "b"), (19.9, "end")),
        60,
        [(9.9, "a"), (19.8, "b"), (19.9, "end")],
    ),
    "a late first token": (
        ((25, "a"), (26, "end")),
        60,
        [(10, "comment"), (20, "comment"), (25, "a"), (26, "end")],
    ),
    "a pause in the answer": (
        ((1, "a"), (12, "b"), (13, "end")),
        60,
        [(1, "a"), (11, "comment"), (12, "b"), (13, "end")],
    ),
    "frames just in time put it off each time": (
        tuple((9.0 * at, "a") for at in range(1, 6)),
        56,
        [*((9.0 * at, "a") for at in range(1, 6)), (55, "comment")],
    ),
    "a failure ends it": (((15, "fail"),), 60, [(10, "comment"), (15, "failed")]),
    "a client that reads slowly is sent none": (
        ((5, "backed_up=yes"), (25, "backed_up=no")),
        35,
        # Looked at after 10 and 20 seconds: bytes wait for it.
        [(30, "comment")],
    ),
    "frames on their way are no silence": (
        ((1, "slow=25"), (2, "a"), (27, "end")),
        60,
        [(27, "a"), (27, "end")],
    ),
    "none begins the response while its row is written": (
        ((5, "conclude"), (50, "end")),
        60,
        [(50, "end")],
    ),
    "a response that has begun goes on while its row is written": (
        ((5, "a"), (6, "conclude"), (20, "end")),
        60,
        [(5, "a"), (15, "comment"), (20, "end")],
    ),
    "a client that left is sent none": (((15, "disconnected=yes"),), 60, [(10, "comment")]),
}
"""What happens at which second; until when; and what the client gets."""


@pytest.mark.parametrize("name", CASES)
def test_a_silent_stream_is_sent_comments(name: str) -> None:
    script, until, expected = CASES[name]
    assert played(script, until) == expected


@pytest.mark.parametrize(
    ("script", "marked"),
    [(((25, "a"), (26, "b"), (27, "end")), [25]), (((5, "a"), (6, "end")), []), ((), [])],
    ids=["after comments", "without any", "comments alone"],
)
def test_an_observer_is_told_of_the_answer_and_of_no_comment(
    monkeypatch: pytest.MonkeyPatch, script: Script, marked: list[float]
) -> None:
    """The head of a response without comments is marked where it is sent."""
    seen: list[float] = []

    class Seen:
        def mark_first_byte(self) -> None:
            seen.append(asyncio.get_running_loop().time())

    monkeypatch.setattr("inference.chat.keep_alive.observation.current", Seen)
    played(script, 60)
    assert seen == marked


def test_a_sink_that_breaks_does_not_end_the_request(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        async def send_comment(self, comment: bytes) -> None:
            raise RuntimeError

    async def play() -> list[Any]:
        sink = Broken()
        with Comments(sink, SECONDS, "req_test") as comments:
            await asyncio.sleep(25)
            await comments.finish(b"end")
        return sink.got

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(play()) == [(25, "end")]
    assert "req_test" in caplog.text
