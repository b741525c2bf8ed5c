"""Sends the cases of the HTTP/1.1 table and judges what comes back."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from tests.conformance.http.case import After, Case, On
from tests.conformance.place import Place
from tests.conformance.results import Outcome, Result

_SECONDS: Final = 5.0
"""How long an answer or the end of a connection may take."""
_AT_ONCE: Final = 8
_PAUSE: Final = 0.03
"""Between two writes, so that they are two reads of the server."""
OF_EVERY_ERROR: Final = ("date", "x-request-id")
PROBE: Final = (
    "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    "Connection: close\r\n\r\n"
)
"""The request that is sent after a case, whether on its own or as what an attacker would hide."""


class Silence(Exception):
    """Nothing came, neither an answer nor the end of the connection."""


class Broken(Exception):
    """What came is no HTTP answer."""


@dataclass
class Answer:
    """One answer; ``headers`` are by name in lower case."""

    version: str
    status: int
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Reader:
    """Reads answers one after the other from a connection."""

    connection: socket.socket
    waiting: bytes = b""
    ended: bool = False
    interim: list[int] = field(default_factory=list)

    def answer(self, *, no_body: bool = False) -> Answer | None:
        """Return the next final answer, or None at the end of the connection.

        Raises ``Silence`` and ``Broken``.
        """
        while (head := self._until(b"\r\n\r\n")) is not None:
            first, *lines = head.decode("latin-1").split("\r\n")
            matched = re.fullmatch(r"(HTTP/1\.[01]) (\d{3}) ?.*", first)
            if matched is None:
                raise Broken(f"no status line: {first[:80]!r}")
            pairs = (line.partition(":") for line in lines)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            found = Answer(matched[1], int(matched[2]), headers)
            if found.status < 200 and found.status != 101:
                self.interim.append(found.status)
                continue
            if not no_body and found.status not in (101, 204, 304):
                found.body = self._body(found)
            return found
        return None

    def _body(self, answer: Answer) -> bytes:
        if "chunked" in answer.headers.get("transfer-encoding", ""):
            parts = []
            while size := int(self._line().partition(b";")[0], 16):
                parts.append(self._exactly(size))
                self._exactly(2)
            while self._line():
                pass
            return b"".join(parts)
        if "content-length" in answer.headers:
            return self._exactly(int(answer.headers["content-length"]))
        while self._more():
            pass
        body, self.waiting = self.waiting, b""
        return body

    def _line(self) -> bytes:
        line = self._until(b"\r\n")
        if line is None:
            raise Broken("the answer breaks off")
        return line

    def _until(self, marker: bytes) -> bytes | None:
        while marker not in self.waiting:
            if not self._more():
                if self.waiting:
                    raise Broken(f"the answer breaks off: {self.waiting[:80]!r}")
                return None
        found, _, self.waiting = self.waiting.partition(marker)
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self.waiting) < count:
            if not self._more():
                raise Broken("the answer breaks off")
        found, self.waiting = self.waiting[:count], self.waiting[count:]
        return found

    def _more(self) -> bool:
        if self.ended:
            return False
        try:
            read = self.connection.recv(65536)
        except TimeoutError:
            raise Silence from None
        except ConnectionError:
            read = b""
        self.waiting += read
        self.ended = not read
        return not self.ended


def run_table(place: Place, cases: Iterable[Case]) -> list[Result]:
    """Send every case on its surfaces, in one write and in two, some at a time."""
    surfaces = {
        On.INFERENCE: (place.port, place.key),
        On.SPEECH: (place.speech_port, place.speech_key),
    }

    def result(asked: tuple[Case, On, int]) -> Result:
        case, surface, writes = asked
        problem = judge(case, *surfaces[surface], writes)
        return Result(
            f"{case.name}, {surface.value}, {'one write' if writes == 1 else 'two writes'}",
            Outcome.FAILED if problem else Outcome.PASSED,
            f"{case.section}: {problem}" if problem else "",
        )

    asked = [
        (case, surface, writes)
        for case in cases
        for surface in surfaces
        if case.on in (On.BOTH, surface)
        for writes in (1, 2)
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(result, asked))


def judge(case: Case, port: int, key: str, writes: int) -> str:
    """Send one case; return what is wrong with what came back, "" where nothing is."""
    with socket.create_connection(("127.0.0.1", port), _SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = Reader(connection)
        try:
            _send(connection, case, key, writes)
            return _problem(_allowing(case, writes), reader, key)
        except Silence:
            return "neither an answer nor the end of the connection"
        except (Broken, ValueError) as broken:
            return str(broken)


def _allowing(case: Case, writes: int) -> Case:
    """Return the case with ``early`` among its answers where it has two writes."""
    if writes == 1 or not case.early:
        return case
    return replace(case, answers=tuple(f"{each}|{case.early}" for each in case.answers))


def _send(connection: socket.socket, case: Case, key: str, writes: int) -> None:
    parts = list(case.halves()) if writes == 2 else [case.sent]
    if case.after is After.CLOSED:
        # What an attacker hides behind a refused request comes at once.
        parts[-1] += PROBE
    for number, part in enumerate(parts):
        if number:
            time.sleep(_PAUSE)
        try:
            connection.sendall(part.replace("{key}", key).encode("latin-1"))
        except ConnectionError:
            return  # it has been refused already; the answer is there to be read


def _problem(case: Case, reader: Reader, key: str) -> str:
    answer: Answer | None = None
    for number, wanted in enumerate(case.answers, 1):
        answer = reader.answer(no_body=case.no_body)
        if answer is None:
            return f"closed without answer {number} ({wanted})"
        if not fits(answer.status, wanted):
            return f"answer {number} is {answer.status}, not {wanted}: {answer.body[:120]!r}"
        if found := _malformed(answer, no_body=case.no_body):
            return found
    if (100 in reader.interim) is not case.interim:
        return "no 100 (Continue) came" if case.interim else f"{reader.interim} came"
    if answer is not None:
        for line in case.headers:
            name, _, value = line.partition(": ")
            if answer.headers.get(name, "").lower() != value:
                return f"{name} is {answer.headers.get(name)!r}, not {value!r}"
        for name in case.without:
            if name in answer.headers:
                return f"the answer has {name}: {answer.headers[name]}"
    if answer is not None and answer.status == 101:
        return ""
    return _connection(case, reader, key)


def fits(status: int, wanted: str) -> bool:
    """Say whether ``status`` is one of ``wanted``, such as ``400|5xx``."""
    return any(
        re.fullmatch(each.replace("x", r"\d"), str(status)) is not None
        for each in wanted.split("|")
    )


def _malformed(answer: Answer, *, no_body: bool) -> str:
    """Say what an error lacks of what every error has."""
    if answer.status < 400:
        return ""
    for name in OF_EVERY_ERROR:
        if name not in answer.headers:
            return f"the {answer.status} has no {name}"
    if no_body:
        return ""
    try:
        told = json.loads(answer.body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return f"the {answer.status} is no JSON error: {answer.body[:120]!r}"
    return "" if told else "the error says nothing"


def _connection(case: Case, reader: Reader, key: str) -> str:
    """Say what is wrong with what becomes of the connection."""
    if case.after is After.CLOSED:
        extra = reader.answer()
        return f"a second answer to one request: {extra.status}" if extra else ""
    try:
        reader.connection.sendall(PROBE.replace("{key}", key).encode())
        extra = reader.answer()
    except ConnectionError:
        extra = None
    except Silence:
        return "the connection is kept, and the next request gets no answer"
    if extra is None:
        return "the connection was closed" if case.after is After.KEPT else ""
    if extra.status != 200:
        return f"the next request was answered with {extra.status}"
    return "a third answer" if reader.answer() else ""
