"""Reads both sides of an HTTP/1.1 connection, independently of the server's parser.

What was sent is read by h11; what was received by a reader that accepts nothing but exact framing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import h11

from tests.support.fuzzing.http_conversations import Conversation

_STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [\x20-\x7e]*")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x20-\x7e]*)")
_SPACES = re.compile(rb"^([A-Z-]+) +(\S+) +(HTTP/1\.[01])\r\n", re.MULTILINE)
_LARGEST = 1_000_000
_OVERLOADED = {408, 503}
"""Statuses of any request on a machine that is too slow for it, or for its client."""


class End(Enum):
    """What the bytes of a client end with."""

    OPEN = "between two requests"
    CLOSED = "after a request that ends the connection"
    HEAD = "inside a head"
    BODY = "inside a body"
    BROKEN = "in what is no HTTP"


@dataclass
class Sent:
    """What a strict reader of the client's bytes finds."""

    methods: list[str] = field(default_factory=list)
    """Of all requests whose heads are complete and valid."""
    end: End = End.OPEN
    upgrades: list[bool] = field(default_factory=list)
    """Which of them may become WebSockets."""
    chats: int = 0
    """How many of them a model server may see."""
    credentials: set[bytes] = field(default_factory=set)
    """The ``authorization`` fields of all requests."""

    @property
    def most_answers(self) -> int:
        return len(self.methods) + (self.end in (End.HEAD, End.BROKEN))

    @property
    def stays_open(self) -> bool:
        """Whether the connection may stay open, once all requests are answered.

        A request may be answered before its body has arrived.
        """
        return self.end in (End.OPEN, End.BODY)


def read_sent(content: bytes) -> Sent:
    """Read a client's bytes as a server does that answers each request and switches none.

    Two liberties that RFC 9112 gives a reader are taken: several spaces in a request line (section
    3), and empty lines before it (section 2.2).
    """
    found = Sent()
    rest = _SPACES.sub(rb"\1 \2 \3\r\n", content)
    while found.end is End.OPEN and (rest := rest.lstrip(b"\r\n")):
        rest = _read_request(rest, found)
    return found


def _read_request(content: bytes, found: Sent) -> bytes:
    """Add the first request of ``content`` to ``found``, and return the bytes behind it."""
    reader = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST)
    reader.receive_data(content)
    found.end = End.HEAD
    while True:
        try:
            event = reader.next_event()
        except h11.RemoteProtocolError:
            found.end = End.BROKEN
            return b""
        if isinstance(event, h11.Request):
            found.end = End.BODY
            found.methods.append(event.method.decode())
            found.chats += event.target.partition(b"?")[0].endswith(b"/v1/chat/completions")
            found.credentials |= {
                value for name, value in event.headers if name == b"authorization"
            }
            found.upgrades.append(
                any(n == b"upgrade" and b"websocket" in v.lower() for n, v in event.headers)
            )
        elif isinstance(event, h11.EndOfMessage):
            keeps = reader.their_state is not h11.MUST_CLOSE
            found.end = End.OPEN if keeps else End.CLOSED
            return reader.trailing_data[0] if keeps else b""
        elif not isinstance(event, h11.Data):
            return b""


def request_at(content: bytes, number: int) -> tuple[bytes, bool]:
    """Return a client's bytes from its request of that number on, and whether that request is valid.

    Where a request before it is not valid, that one is returned. Requests count from 0.
    """
    rest = content.lstrip(b"\r\n")
    while True:
        found = Sent()
        after = _read_request(rest, found)
        if number == 0 or found.end is not End.OPEN:
            return rest, found.end not in (End.HEAD, End.BROKEN)
        rest, number = after.lstrip(b"\r\n"), number - 1


class Malformed(AssertionError):
    """The server's bytes are not a row of whole answers."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body; of a stream what it says, put together."""
        text = self.body.decode()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            return "".join(re.findall(r'"content":"([^"]*)"', text))
        return text

    @property
    def closes(self) -> bool:
        return "close" in self.headers.get("connection", "").lower()


@dataclass
class Received:
    """What a client finds in the bytes of a server."""

    answers: list[Answer] = field(default_factory=list)
    interim: int = 0
    rest: bytes = b""
    """The beginning of an answer that is not complete; after a 101 all that follows."""


def read_received(content: bytes, methods: Sequence[str]) -> Received:
    """Read a server's bytes. Raises ``Malformed``."""
    found = Received()
    while content:
        method = methods[len(found.answers)] if len(found.answers) < len(methods) else ""
        head, blank, after = content.partition(b"\r\n\r\n")
        if not blank:
            break
        answer = _head_of(head)
        if answer.status == 100:
            found.interim += 1
            content = after
            continue
        if answer.status == 101:
            found.answers.append(answer)
            content = after
            break
        body, after = _body_of(answer, after, is_head=method == "HEAD")
        if body is None:
            break
        answer.body = body
        found.answers.append(answer)
        content = after
    found.rest = content
    return found


def _head_of(head: bytes) -> Answer:
    first, *lines = head.split(b"\r\n")
    status = _STATUS_LINE.fullmatch(first)
    if status is None:
        raise Malformed(f"no status line: {first[:100]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise Malformed(f"no header: {line[:100]!r}")
        name = header[1].decode().lower()
        if name in headers and name != "set-cookie":
            raise Malformed(f"{name} twice: {headers[name]} and {header[2].decode()}")
        headers[name] = header[2].decode()
    return Answer(int(status[1]), headers)


def _body_of(answer: Answer, after: bytes, *, is_head: bool) -> tuple[bytes | None, bytes]:
    """Return body and rest; the body is None while it is not complete."""
    if is_head and (not after or after.startswith(b"HTTP/1.1 ")):
        return b"", after
    if answer.status in (204, 304):
        return b"", after
    length, coding = (answer.headers.get(each) for each in ("content-length", "transfer-encoding"))
    if length is None and coding is None and answer.closes:
        return after, b""  # as to HTTP/1.0: it ends with the connection
    if (length is None) == (coding is None):
        raise Malformed(f"no single framing: {answer.headers}")
    if length is not None:
        size = int(length)
        return (after[:size], after[size:]) if len(after) >= size else (None, after)
    body = b""
    while True:
        line, end, after = after.partition(b"\r\n")
        if not end:
            return None, b""
        if re.fullmatch(rb"[0-9a-f]+", line) is None:
            raise Malformed(f"no chunk size: {line[:40]!r}")
        size = int(line, 16)
        if len(after) < size + 2:
            return None, b""
        if after[size : size + 2] != b"\r\n":
            raise Malformed("a chunk is longer than its size")
        body, after = body + after[:size], after[size + 2 :]
        if size == 0:
            return body, after


def faults_of_http(conversation: Conversation, received: bytes, *, ended: bool) -> list[str]:
    """Say what is wrong with a connection, of which ``ended`` says whether the server ended it.

    ``ended`` is False when it was still open long after everything had to be answered.
    """
    sent = read_sent(conversation.sent)
    try:
        found = read_received(received, sent.methods)
    except Malformed as malformed:
        return [str(malformed)]
    answers = found.answers
    faults = [fault for answer in answers for fault in _faults_of_answer(answer)]
    if len(answers) > sent.most_answers:
        faults.append(f"{len(answers)} answers to {sent.most_answers} requests")
    if found.interim > len(sent.methods):
        faults.append(f"{found.interim} interim answers to {len(sent.methods)} requests")
    if any(answer.closes for answer in answers[:-1]):
        faults.append("an answer behind one that closes")
    switched = bool(answers) and answers[-1].status == 101
    if switched and not any(sent.upgrades[len(answers) - 1 : len(answers)]):
        faults.append("a switch that nobody asked for")
    if not (ended or switched or (sent.stays_open and len(answers) >= len(sent.methods))):
        faults.append(f"silence: {len(answers)} of {len(sent.methods)} answered, {sent.end.value}")
    # A body that is no HTTP ends the connection in the middle of its own answer.
    if ended and found.rest and conversation.is_valid and not conversation.hangs_up:
        faults.append(f"half an answer: {found.rest[:80]!r}")
    is_cut = conversation.hangs_up or any(answer.closes for answer in answers)
    is_cut |= conversation.writes_on and len(answers) >= len(conversation.asked) - 1
    if conversation.is_valid and len(answers) < len(conversation.asked) and not is_cut:
        faults.append(f"{len(answers)} answers to {len(conversation.asked)} valid requests")
    return faults + _unlike(conversation, answers)


def _faults_of_answer(answer: Answer) -> list[str]:
    faults = []
    if answer.status >= 500 and answer.status not in (501, 503, 505):
        faults.append(f"status {answer.status}: {answer.body[:200]!r}")
    if not answer.headers.get("x-request-id"):
        faults.append(f"{answer.status} without x-request-id")
    if answer.status != 101 and not answer.headers.get("date"):
        faults.append(f"{answer.status} without date")
    return faults


def _unlike(conversation: Conversation, answers: Sequence[Answer]) -> list[str]:
    """Compare the answers with what was asked, one by one."""
    faults = []
    for number, (asked, answer) in enumerate(zip(conversation.asked, answers, strict=False)):
        if answer.status not in asked.statuses | _OVERLOADED:
            faults.append(f"answer {number} is {answer.status}, not {sorted(asked.statuses)}")
        elif asked.mark and answer.status not in _OVERLOADED and asked.mark not in answer.text:
            faults.append(f"answer {number} is not for {asked.mark}: {answer.body[:200]!r}")
    return faults
