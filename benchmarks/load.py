"""The load generator: raw connections that ask, check and count; a process of its own.

``python -m benchmarks.load --port N ...`` prints one JSON line, a ``Load``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import cast

import msgspec
import uvloop

from benchmarks.payloads import PATH, STREAM_END, Pace, events_of, request_body

_TIMEOUT_SECONDS = 10.0


class Load(msgspec.Struct, frozen=True):
    """What one run saw. ``requests`` were answered in full; ``failures`` were not, or wrongly.

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
    """What to do: ``concurrency`` connections for ``seconds``, or one request on each (``once``),
    begun evenly over ``spread`` seconds. ``tokens`` in each stream; 0 asks for whole answers."""

    port: int
    key: str
    pace: Pace
    concurrency: int
    seconds: float
    tokens: int = 0
    once: bool = False
    spread: float = 0.0

    def request(self) -> bytes:
        body = request_body(self.pace, stream=self.tokens > 0)
        head = (
            f"POST {PATH} HTTP/1.1\r\n"
            f"host: 127.0.0.1:{self.port}\r\n"
            f"authorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class Tally:
    """What all connections of a run have seen so far."""

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
    """One connection in a closed loop: the next request leaves when the answer is complete."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._asked = 0.0
        self._first = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._asked:
            self._tally.fail("the connection was lost")
        self._tally.closed()

    def data_received(self, data: bytes) -> None:
        parts = self._parts
        parts.append(data)
        if self._tally.events:
            if not self._first and b"data: " in data:
                self._first = time.perf_counter()
            if data.endswith(STREAM_END) or (
                len(data) < len(STREAM_END) and b"".join(parts[-5:]).endswith(STREAM_END)
            ):
                self._complete(_stream_complaint(b"".join(parts), self._tally.events))
        else:
            answer = parts[0] if len(parts) == 1 else b"".join(parts)
            if _is_whole(answer):
                self._complete(_status_complaint(answer))

    def _ask(self) -> None:
        assert self._transport is not None
        self._parts = []
        self._first = 0.0
        self._asked = time.perf_counter()
        self._transport.write(self._tally.request)

    def _complete(self, complaint: str | None) -> None:
        assert self._transport is not None
        tally = self._tally
        now = time.perf_counter()
        if complaint is None:
            tally.latencies.append(now - self._asked)
            if self._first:
                tally.first_bytes.append(self._first - self._asked)
        else:
            tally.fail(complaint)
        if tally.plan.once or now >= tally.deadline:
            self._asked = 0.0
            self._transport.close()
        else:
            self._ask()


def _is_whole(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator:
        return False
    lowered = head.lower()
    place = lowered.find(b"content-length:")
    if place < 0:
        return answer.endswith(STREAM_END)
    return len(body) >= int(lowered[place + 15 :].split(b"\r\n", 1)[0])


def _status_complaint(answer: bytes) -> str | None:
    if answer.startswith(b"HTTP/1.1 200 "):
        return None
    return answer[:300].decode("latin-1")


def _stream_complaint(answer: bytes, events: int) -> str | None:
    if complaint := _status_complaint(answer):
        return complaint
    if answer.count(b"data: ") == events and answer.count(b"data: [DONE]\n\n") == 1:
        return None
    # A relay may cut its HTTP chunks anywhere, also inside of what is counted.
    body = _dechunked(answer.partition(b"\r\n\r\n")[2])
    found = body.count(b"data: ")
    if found == events and body.endswith(b"data: [DONE]\n\n"):
        return None
    return f"a stream had {found} events, not {events}"


def _dechunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :] if length else b""
    return b"".join(parts)


async def run(plan: Plan) -> Load:
    """Do what ``plan`` says; complaints go to standard error."""
    tally = Tally(plan)
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    tally.deadline = began + plan.seconds
    tally.running = plan.concurrency
    for number in range(plan.concurrency):
        await loop.create_connection(lambda: Asker(tally), "127.0.0.1", plan.port)
        if plan.spread:
            due = began + plan.spread * (number + 1) / plan.concurrency
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
    try:
        await asyncio.wait_for(tally.done.wait(), plan.seconds + _TIMEOUT_SECONDS)
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
