"""The load generator: raw connections that send requests, check and count; a process of its own.

``python -m benchmarks.load --port N ...`` prints one JSON line, a ``Load``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import deque
from collections.abc import Sequence
from statistics import median
from threading import Thread
from typing import cast

import msgspec
import uvloop

from benchmarks.payloads import PATH, STREAM_END, Pace, events_of, request_body
from benchmarks.received import is_complete, status_complaint, stream_complaint

_TIMEOUT_SECONDS = 10.0


class Load(msgspec.Struct, frozen=True):
    """The result of a run. ``requests`` were answered in full; ``failures`` were not, or wrongly.

    ``frames`` are events of streams. Times in milliseconds, ``seconds`` from the first request to
    the last answer; ``first_p50_ms`` is the median time to a stream's first byte of body.
    """

    requests: int
    failures: int
    frames: int
    seconds: float
    p50_ms: float
    p99_ms: float
    first_p50_ms: float


class Plan(msgspec.Struct, frozen=True):
    """The load: ``concurrency`` connections for ``seconds``, or one request on each (``once``), begun
    evenly over ``spread`` seconds. ``tokens`` in each stream; 0 requests whole answers.

    ``rate``: requests a second that arrive at random times, over whichever connection is idle; 0 sends
    the next request of a connection when its answer is complete. ``exact``: a stream has the stub's
    events and no others; else it has at least its tokens, and ends with ``[DONE]``.
    """

    port: int
    key: str
    pace: Pace
    concurrency: int
    seconds: float
    tokens: int = 0
    once: bool = False
    spread: float = 0.0
    rate: float = 0.0
    headers: dict[str, str] = {}
    exact: bool = True

    def request(self) -> bytes:
        body = request_body(self.pace, stream=self.tokens > 0)
        head = (
            f"POST {PATH} HTTP/1.1\r\n"
            f"host: 127.0.0.1:{self.port}\r\n"
            f"authorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
        )
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return head.encode() + b"\r\n" + body


class Tally:
    """The counts of all connections of a run so far."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.request = plan.request()
        self.events = events_of(plan.tokens) if plan.tokens else 0
        self.latencies: list[float] = []
        self.first_bytes: list[float] = []
        self.failures = 0
        self.complaints: set[str] = set()
        self.running = 0
        self.done = asyncio.Event()
        self.deadline = 0.0

    def fail(self, complaint: str) -> None:
        self.failures += 1
        self.complaints.add(complaint)

    def closed(self) -> None:
        self.running -= 1
        if not self.running:
            self.done.set()


class Asker(asyncio.Protocol):
    """One connection: in a closed loop it sends the next request when the answer is complete."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._asked = 0.0
        self._first = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self.begin()

    def begin(self) -> None:
        """Send the first request."""
        self.ask(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        if self._asked:
            self._tally.fail("the connection was lost")
        self._tally.closed()

    def data_received(self, data: bytes) -> None:
        parts = self._parts
        parts.append(data)
        if self._tally.events:
            if not self._first:
                if not parts[0].startswith(b"HTTP/1.1 200"):
                    self._refused(b"".join(parts))
                    return
                if b"data: " in data:
                    self._first = time.perf_counter()
            if data.endswith(STREAM_END) or (
                len(data) < len(STREAM_END) and b"".join(parts[-5:]).endswith(STREAM_END)
            ):
                self._complete(self._stream_complaint())
        else:
            answer = parts[0] if len(parts) == 1 else b"".join(parts)
            if is_complete(answer):
                self._complete(status_complaint(answer))

    def _refused(self, answer: bytes) -> None:
        if is_complete(answer):
            self._complete(status_complaint(answer))

    def _stream_complaint(self) -> str | None:
        plan = self._tally.plan
        return stream_complaint(b"".join(self._parts), plan.tokens, exact=plan.exact)

    def ask(self, due: float) -> None:
        """Send a request; its latency begins at ``due``."""
        assert self._transport is not None
        self._parts = []
        self._first = 0.0
        self._asked = due
        self._transport.write(self._tally.request)

    def close(self) -> None:
        """Close the connection, which waits for no answer."""
        assert self._transport is not None
        self._asked = 0.0
        self._transport.close()

    def go_on(self, now: float) -> None:
        """Send the next request after a complete answer, or end."""
        if self._tally.plan.once or now >= self._tally.deadline:
            self.close()
        else:
            self.ask(time.perf_counter())

    def _complete(self, complaint: str | None) -> None:
        tally = self._tally
        now = time.perf_counter()
        if complaint is None:
            tally.latencies.append(now - self._asked)
            if self._first:
                tally.first_bytes.append(self._first - self._asked)
        else:
            tally.fail(complaint)
        self.go_on(now)


class Arrivals:
    """Requests that arrive at random times, whatever becomes of earlier ones: an open loop."""

    def __init__(self, tally: Tally, loop: asyncio.AbstractEventLoop) -> None:
        self._tally = tally
        self._loop = loop
        self._idle: list[IdleAsker] = []
        self._waiting: deque[float] = deque()
        self._ended = False

    def begin(self) -> None:
        """Let requests arrive, from a thread: a timer of the loop is a millisecond wide."""
        Thread(target=self._arrive, daemon=True).start()

    def idle(self, asker: IdleAsker) -> None:
        """Send the request that has waited longest over ``asker``, or keep it for the next one."""
        if self._waiting:
            asker.ask(self._waiting.popleft())
        elif self._ended:
            asker.close()
        else:
            self._idle.append(asker)

    def _arrive(self) -> None:
        gaps = random.Random(1)
        due = time.perf_counter()
        while (due := due + gaps.expovariate(self._tally.plan.rate)) < self._tally.deadline:
            if (pause := due - time.perf_counter()) > 0:
                time.sleep(pause)
            self._loop.call_soon_threadsafe(self._ask, due)
        self._loop.call_soon_threadsafe(self._end)

    def _ask(self, due: float) -> None:
        if self._idle:
            self._idle.pop().ask(due)
        else:
            self._waiting.append(due)

    def _end(self) -> None:
        self._ended = True
        while self._idle:
            self._idle.pop().close()


class IdleAsker(Asker):
    """One connection of an open loop; it sends a request when one arrives."""

    def __init__(self, tally: Tally, arrivals: Arrivals) -> None:
        super().__init__(tally)
        self._arrivals = arrivals

    def begin(self) -> None:
        self._arrivals.idle(self)

    def go_on(self, now: float) -> None:
        self._arrivals.idle(self)


async def run(plan: Plan) -> Load:
    """Run ``plan``; complaints go to standard error."""
    tally = Tally(plan)
    loop = asyncio.get_running_loop()
    tally.running = plan.concurrency
    arrivals = Arrivals(tally, loop)
    began = time.perf_counter()
    tally.deadline = began + plan.seconds
    for number in range(plan.concurrency):
        await loop.create_connection(
            lambda: IdleAsker(tally, arrivals) if plan.rate else Asker(tally),
            "127.0.0.1",
            plan.port,
        )
        if plan.spread:
            due = began + plan.spread * (number + 1) / plan.concurrency
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
    if plan.rate:
        began = time.perf_counter()
        tally.deadline = began + plan.seconds
        arrivals.begin()
    try:
        async with asyncio.timeout(plan.seconds + _TIMEOUT_SECONDS):
            await tally.done.wait()
    except TimeoutError:
        tally.failures += tally.running
        tally.complaints.add("answers did not end in time")
    seconds = time.perf_counter() - began
    for complaint in tally.complaints:
        print(complaint, file=sys.stderr)
    return Load(
        requests=len(tally.latencies),
        failures=tally.failures,
        frames=len(tally.latencies) * tally.events,
        seconds=seconds,
        p50_ms=_milliseconds(tally.latencies, 0.5),
        p99_ms=_milliseconds(tally.latencies, 0.99),
        first_p50_ms=median(tally.first_bytes) * 1000 if tally.first_bytes else 0.0,
    )


def _milliseconds(seconds: Sequence[float], quantile: float) -> float:
    if not seconds:
        return 0.0
    ordered = sorted(seconds)
    return ordered[min(int(len(ordered) * quantile), len(ordered) - 1)] * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("plan", help="a Plan as JSON")
    plan = msgspec.json.decode(parser.parse_args().plan, type=Plan)
    sys.stdout.write(msgspec.json.encode(uvloop.run(run(plan))).decode() + "\n")


if __name__ == "__main__":
    main()
