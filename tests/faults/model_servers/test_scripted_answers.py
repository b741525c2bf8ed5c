"""Answers that no model server should give, byte by byte, and the contract's answer and row for each."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import pytest

from tests.support.faults.case import PATIENCE, Case, publish_single
from tests.support.live import Gateway
from tests.support.model_servers.scripted import (
    CHUNKED_HEAD,
    CONTENT,
    DONE,
    FINISH,
    GOOD,
    ROLE,
    STREAM_HEAD,
    TOKENS,
    USAGE,
    WORDS,
    Pause,
    Script,
    ScriptedServer,
    Step,
    body,
    chunk,
    chunked,
    completion,
    frames,
    head,
    stream,
    usage,
)
from tests.support.servers.tcp_proxy import End

Told = tuple[int, str | None]
SERVED: Told = (200, None)
REJECTED: Told = (400, "backend_rejected_request")
GONE: Told = (500, "backend_unavailable")
FAILED: Told = (500, "backend_error")
INVALID: Told = (500, "backend_protocol_error")
SILENT: Told = (503, "backend_timeout")
FULL: Told = (503, "server_overloaded")
LATE = Pause(3 * PATIENCE)
OUTCOMES = {
    None: "success",
    "backend_rejected_request": "backend_rejected",
    "server_overloaded": "backend_unavailable",
}
"""The outcome on the row by the code, where the two differ."""


def in_band(told: Told) -> Told:
    return 200, told[1]


@dataclass(frozen=True)
class Row:
    """A row of the table: the server's answer, and the client's, streamed and not.

    ``produced``: the tokens of the answer; the usage row may have no more.
    """

    streamed: list[Step]
    streamed_told: Told
    whole: list[Step]
    whole_told: Told
    produced: int = TOKENS


def both(steps: list[Step], told: Told) -> Row:
    """The same answer for streamed and whole requests; no token was generated."""
    return Row(steps, told, steps, told, produced=0)


def refusal(status: int, told: Told) -> Row:
    return both([body(b'{"error": {"message": "no"}}', status)], told)


def ends_with(*frames: dict[str, object] | str) -> list[Step]:
    """A stream whose last frames are these."""
    return stream(ROLE, *CONTENT, *frames)


def chosen(**choice: object) -> list[Step]:
    """A whole answer with this choice."""
    return [body(completion(choices=[choice]))]


def reported(figure: object, produced: int = TOKENS, **others: object) -> Row:
    """A whole and a streamed answer that end with this number of completion tokens."""
    said = usage(figure, **others)
    steps = stream(ROLE, *CONTENT, FINISH, chunk(None, usage=said), DONE)
    return ends(steps, [body(completion(usage=said))], INVALID, produced)


def ends(streamed: list[Step], whole: list[Step], told: Told, produced: int = TOKENS) -> Row:
    """Both fail with the same code, the stream after its 200."""
    return Row(streamed, in_band(told), whole, told, produced)


def only_streamed(steps: list[Step], told: Told, produced: int = TOKENS) -> Row:
    return Row(steps, told, [body(completion())], SERVED, produced)


WHOLE = body(completion())
ROLE_FRAME, *CONTENT_FRAMES = frames(ROLE, *CONTENT)
SOON = Pause(0.05)
BEGUN: list[Step] = [CHUNKED_HEAD, chunked(ROLE_FRAME), chunked(CONTENT_FRAMES[0]), SOON]
"""The client has received the first word before the next steps."""
INSIDE = chunked(CONTENT_FRAMES[1])[:40]
TEXT = json.dumps(chunk({"content": "naïve ☃"}), ensure_ascii=False)
SPLIT = f"data: {TEXT}\n\n".encode()
GZIPPED = gzip.compress(completion())
PADDED = chunk({"content": "x"}, padding="y" * (1024 * 1024))

STATUSES = {
    f"status {status}": refusal(status, told)
    for told, statuses in {
        INVALID: (201,),
        REJECTED: (400, 413),
        FAILED: (401, 500),
        SILENT: (408, 504),
        FULL: (429, 503),
    }.items()
    for status in statuses
}
NOT_ANSWERS = {
    "204": both([head(204, "application/json")], INVALID),
    "redirect to metadata": both(
        [body(b"", 302, "text/html", "location: http://169.254.169.254/latest/meta-data/")], INVALID
    ),
    "html": both([body(b"<html>hello</html>", 200, "text/html")], INVALID),
    "not json": both([body(b"{not json", 200)], INVALID),
    "deeply nested": both([body(b"[" * 100_000, 200)], INVALID),
    "not http": both([b"SSH-2.0-OpenSSH_9.7\r\n\r\n", End.FIN], INVALID),
    "gzip": Row(
        [body(GZIPPED, 200, "text/event-stream", "content-encoding: gzip")],
        INVALID,
        [body(GZIPPED, 200, "application/json", "content-encoding: gzip")],
        INVALID,
        0,
    ),
    "endless header": both([b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, End.FIN], INVALID),
    "wrong types": Row(
        stream(chunk({"content": 7}), DONE), INVALID, [body(completion(choices="none"))], INVALID, 0
    ),
}
BROKEN_OFF = {
    "reset at a frame": ends([*BEGUN, End.RST], [WHOLE[:-200], SOON, End.RST], GONE),
    "end inside a frame": ends([*BEGUN, INSIDE, End.FIN], [WHOLE[:-1], End.FIN], GONE),
    # Without a length or chunks the connection's end is the end of the answer.
    "end without a length": ends(
        [STREAM_HEAD, ROLE_FRAME, CONTENT_FRAMES[0], SOON, End.FIN],
        [head(200), completion()[:-200], End.FIN],
        INVALID,
    ),
    "silence before headers": both([LATE], SILENT),
    "silence after headers": Row(
        [STREAM_HEAD, LATE], SILENT, [WHOLE[: WHOLE.index(b"{")], LATE], SILENT, 0
    ),
    "silence between frames": ends([*BEGUN, LATE], [WHOLE[:-200], LATE], SILENT),
    "silence before usage": ends(
        [STREAM_HEAD, *frames(ROLE, *CONTENT, FINISH), LATE], [WHOLE[:-20], LATE], SILENT
    ),
    "no finish reason": ends(
        ends_with(USAGE, DONE), chosen(index=0, message={"content": "One"}), INVALID
    ),
    **{
        f"finish reason {reason}": ends(
            ends_with(chunk({}, finish_reason=reason), USAGE, DONE),
            chosen(message={"content": "One"}, finish_reason=reason),
            told,
        )
        for reason, told in {"tired": INVALID, "error": FAILED}.items()
    },
}
REASONING = {**usage(), "completion_tokens_details": {"reasoning_tokens": 9}}
FIGURES = {
    "usage -1": reported(-1),
    "usage 2^63": reported(2**63),
    "usage 2^31": reported(2**31),
    "usage 10^400": reported(10**400),
    "usage beyond the context": reported(10**8),
    "prompt beyond the context": reported(TOKENS, prompt=10**9),
    "usage a text": reported("4"),
    "usage 1.5": reported(1.5),
    "usage null": reported(None),
    "no usage": Row(ends_with(FINISH, DONE), SERVED, [body(completion(usage=None))], SERVED),
    "two usages": only_streamed(ends_with(FINISH, USAGE, USAGE, DONE), SERVED),
    "decreasing usage": only_streamed(
        ends_with(FINISH, USAGE, chunk(None, usage=usage(1)), DONE), in_band(INVALID)
    ),
    "usage -1 from the start": Row(
        stream({**ROLE, "usage": usage(-1)}, *CONTENT, FINISH, USAGE, DONE),
        INVALID,
        [body(completion(usage=usage(-1)))],
        INVALID,
        0,
    ),
    "more reasoning than output": ends(
        ends_with(FINISH, chunk(None, usage=REASONING)),
        [body(completion(usage=REASONING))],
        INVALID,
    ),
}
TWO_LINES = b'data: {"choices":\ndata: []}\n\n'
FRAMING = {
    "one byte at a time": Row(
        [STREAM_HEAD, *[bytes([each]) for each in b"".join(frames(*GOOD))], End.FIN],
        SERVED,
        [bytes([each]) for each in WHOLE],
        SERVED,
    ),
    "CRLF": only_streamed(stream(*GOOD, line_end="\r\n"), SERVED),
    "byte order mark": Row(
        [STREAM_HEAD, b"\xef\xbb\xbf", *frames(*GOOD), End.FIN],
        SERVED,
        [body(b"\xef\xbb\xbf" + completion())],
        INVALID,
    ),
    "no choices at first": only_streamed(stream(chunk(None), *GOOD), SERVED),
    "bad UTF-8": Row(
        [STREAM_HEAD, ROLE_FRAME, SPLIT.replace("☃".encode(), b"\xff\xfe"), End.FIN],
        in_band(INVALID),
        [body(completion().replace(b"One", b"\xff\xfe"))],
        INVALID,
    ),
    "oversized frame": only_streamed(stream(ROLE, PADDED, FINISH, USAGE, DONE), in_band(INVALID)),
    "[DONE] twice": only_streamed(stream(*GOOD, DONE), SERVED),
    "data after [DONE]": only_streamed(stream(*GOOD, *CONTENT, "{not json"), SERVED),
    "no [DONE]": only_streamed(stream(*GOOD[:-1]), SERVED),
    "comments and unknown fields": only_streamed(
        [STREAM_HEAD, b": hello\n\nevent: x\nretry: 5\nid: 7\n\n", *frames(*GOOD), End.FIN], SERVED
    ),
    "two data lines": only_streamed(
        [STREAM_HEAD, *frames(*GOOD[:-1]), TWO_LINES, *frames(DONE), End.FIN], SERVED
    ),
}


def called(arguments: object) -> dict[str, object]:
    """A tool call whose arguments have a server's own form."""
    return {"index": 0, "id": "c", "function": {"name": "find", "arguments": arguments}}


def calling(*arguments: object) -> Row:
    calls = [called(each) for each in arguments]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    steps = stream(ROLE, *[chunk({"tool_calls": [each]}) for each in calls], FINISH, USAGE, DONE)
    return Row(steps, SERVED, chosen(message=message, finish_reason="tool_calls"), SERVED)


NULL_DELTA = {"choices": [{"index": 0, "delta": None, "finish_reason": None}]}
NO_DELTA = {"choices": [{"index": 0, "finish_reason": None}]}
FLAT = '{"object": "error", "message": "no", "type": "InternalServerError", "code": 500}'
ERROR_EVENT = b'event: error\ndata: {"error": {"message": "no"}}\n\n'
DIALECTS = {
    "error without error": ends(
        stream(ROLE, CONTENT[0], FLAT, DONE), [body(FLAT.encode())], FAILED, 1
    ),
    "error line": only_streamed(
        [*stream(ROLE, CONTENT[0])[:-1], b'error: {"code": 500, "message": "no"}\n\n', End.FIN],
        in_band(FAILED),
    ),
    "error event": only_streamed(
        [*stream(ROLE, CONTENT[0])[:-1], ERROR_EVENT, End.FIN], in_band(FAILED)
    ),
    "empty finish reasons": only_streamed(
        stream(
            ROLE, *(chunk({"content": word}, finish_reason="") for word in WORDS), FINISH, USAGE
        ),
        SERVED,
    ),
    "arguments null": calling(None),
    "arguments an object": calling({"query": "x"}),
    "delta null": only_streamed(stream(ROLE, NULL_DELTA, *CONTENT, FINISH, USAGE, DONE), SERVED),
    "no delta": only_streamed(stream(ROLE, NO_DELTA, *CONTENT, FINISH, USAGE, DONE), SERVED),
}
WRONG = {
    "arguments a number": ends(
        stream(ROLE, chunk({"tool_calls": [called(7)]}), FINISH, USAGE, DONE),
        chosen(message={"tool_calls": [called(7)]}, finish_reason="tool_calls"),
        INVALID,
        0,
    )
}
TABLE = STATUSES | NOT_ANSWERS | BROKEN_OFF | FIGURES | FRAMING | DIALECTS | WRONG


@pytest.mark.parametrize("name", TABLE)
def test_each_answer_of_a_model_server_has_one_answer_and_books_that_agree(
    gateway: Gateway, scripted: ScriptedServer, name: str, streamed: bool
) -> None:
    row = TABLE[name]
    model = publish_single(gateway, scripted.base_url, running=False)
    case = Case(gateway, model, [scripted.requests])
    scripted.say(Script(row.streamed, row.produced), Script(row.whole, row.produced))

    seen = case.ask(streamed=streamed)

    told = row.streamed_told if streamed else row.whole_told
    assert seen.told == told
    assert seen.complete is (told == SERVED)
    assert len(scripted.requests_of(seen.marker)) == 1
    scripted.heal()
    (stored,) = case.check(1)
    assert stored.outcome == OUTCOMES.get(seen.code, seen.code)


@pytest.mark.parametrize("end", End)
def test_a_stream_may_break_off_at_any_byte_of_a_frame(
    gateway: Gateway, scripted: ScriptedServer, end: End
) -> None:
    """The words before the frame are delivered and on the row; those of the frame are not."""
    model = publish_single(gateway, scripted.base_url, running=False)
    case = Case(gateway, model, [scripted.requests])
    frame = chunked(CONTENT_FRAMES[2])
    words = [chunked(each) for each in (ROLE_FRAME, *CONTENT_FRAMES[:2])]
    before: list[Step] = [CHUNKED_HEAD, *words, Pause(0.02)]
    places = range(0, len(frame), 9)
    for place in places:
        steps: list[Step] = [*before, frame[:place], Pause(0.02), end]
        scripted.streamed = Script(steps, 3)

        seen = case.ask(streamed=True)

        assert seen.told == in_band(GONE), place
        assert seen.pieces == (2 if place < len(frame) - 2 else 3), place
    scripted.heal()
    rows = case.check()
    assert [row.delivered_output_tokens for row in rows] == [seen.pieces for seen in case.seen[:-1]]
