"""Sends answers in the simulator's own form: a stream (role chunk, a frame per step, finish chunk, usage
chunk, ``[DONE]``) or a whole answer, with their faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from msgspec import UNSET

from simulators.chat.answers.answer import Answer, Finish, Part, Step, logprobs_of
from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName
from simulators.chat.wire import (
    AnswerMessage,
    CalledFunction,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionChoice,
    Delta,
    ErrorBody,
    ErrorObject,
    ToolCall,
)
from simulators.serving import Broken, Header, break_connection

FINGERPRINT = "svc-simulator-1"
BIG_FRAME_BYTES = 2 * 1024 * 1024
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)


class Frames:
    """Writes server-sent events, ``burst`` of them in each write."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        faults = exchange.faults
        end = b"\r\n" if FaultName.CRLF in faults else b"\n"
        comment = b": keep-alive" + end + end if FaultName.COMMENTS in faults else b""
        self._comment, self._after = comment, end + end
        self._before = comment + b"data: "
        self._single_bytes = FaultName.SPLIT_BYTES in faults
        self._waiting: list[bytes] = []

    async def begin(self, *extra: Header) -> None:
        headers = [*_HEADERS, *extra]
        await self._exchange.send(
            {"type": "http.response.start", "status": 200, "headers": headers}
        )
        if FaultName.BOM in self._exchange.faults:
            await self._write(b"\xef\xbb\xbf")

    async def add(self, payload: bytes, field: str = "data") -> None:
        """Queue one frame, and write the queue when it has reached the burst.

        ``field`` is the name of its line.
        """
        self._waiting.append(self._comment + field.encode() + b": " + payload + self._after)
        if len(self._waiting) >= self._exchange.pace.burst:
            await self.flush()

    async def flush(self) -> None:
        if self._waiting:
            frames, self._waiting = self._waiting, []
            self._exchange.entry.sent_frames += len(frames)
            await self._write(b"".join(frames))

    async def end(self, *, done: bool = True) -> None:
        """End the stream, with ``[DONE]`` or without."""
        await self.flush()
        marker = self._before + b"[DONE]" + self._after if done else b""
        if FaultName.AFTER_DONE in self._exchange.faults:
            marker += self._before + _chunk(self._exchange) + self._after
        if self._single_bytes:
            await self._write(marker)
            marker = b""
        # Nothing may await after this, or the end of the answer could look like a disconnect.
        await self._exchange.send({"type": "http.response.body", "body": marker})

    async def _write(self, content: bytes) -> None:
        parts = [bytes([byte]) for byte in content] if self._single_bytes else [content]
        for part in parts:
            await self._exchange.send(
                {"type": "http.response.body", "body": part, "more_body": True}
            )
            # One turn of the event loop sends this write by itself and serves other requests.
            await asyncio.sleep(0)


async def answer_streamed(exchange: Exchange) -> None:
    """Send the whole stream. Raises ``Broken`` when a fault ended it."""
    faults, frames = exchange.faults, Frames(exchange)
    await frames.begin()
    await asyncio.sleep(exchange.pace.first)
    if FaultName.EMPTY_CHOICES_FIRST in faults:
        await frames.add(_chunk(exchange))
    await frames.add(_chunk(exchange, ChunkChoice(delta=Delta(role="assistant", content=""))))
    fail = partial(_fail, frames)
    await strike(exchange, frames, 0, fail)
    number = 0
    async for step in exchange.produce():
        await frames.add(_chunk(exchange, _choice(exchange, step), big=number == 0))
        number += 1
        await strike(exchange, frames, number, fail)
    if FaultName.NO_FINISH not in faults:
        finish = ChunkChoice(delta=Delta(), finish_reason=exchange.answer.finish, stop_reason=None)
        await frames.add(_chunk(exchange, finish, last=True))
    if exchange.final_usage:
        usage = _chunk(exchange, final=True, last=True)
        for _ in range(2 if FaultName.USAGE_TWICE in faults else 1):
            await frames.add(usage)
    await frames.end(done=FaultName.NO_DONE not in faults)


async def strike(
    exchange: Exchange, frames: Frames, number: int, fail: Callable[[], Awaitable[None]]
) -> None:
    """Apply the faults that happen after ``number`` steps of the answer.

    A number beyond the end of the answer means its end. ``fail`` sends the error of ``error_frame``
    and ends the stream.
    """

    def due(name: FaultName) -> bool:
        place = exchange.faults.number(name)
        return place is not None and number == min(int(place), len(exchange.answer.steps))

    if due(FaultName.GARBAGE):
        await frames.add(b'{"id":"' + exchange.entry.id.encode() + b'","choices":[{"del')
    if due(FaultName.ERROR_FRAME):
        await fail()
        raise Broken
    if due(FaultName.HANG):
        await frames.flush()
        await asyncio.Event().wait()
    for name in (FaultName.CUT, FaultName.RESET):
        if due(name):
            await frames.flush()
            break_connection(exchange.transport, reset=name is FaultName.RESET)


async def _fail(frames: Frames) -> None:
    error = ErrorObject("The engine died.", "InternalServerError", None, 500)
    await frames.add(msgspec.json.encode(ErrorBody(error)))
    await frames.end()


def _choice(exchange: Exchange, step: Step) -> ChunkChoice:
    role = "assistant" if FaultName.REPEAT_ROLE in exchange.faults else UNSET
    match step.part:
        case Part.REASONING:
            delta = Delta(role=role, reasoning_content=step.text)
        case Part.CONTENT:
            delta = Delta(role=role, content=step.text)
        case Part.CALL:
            call = exchange.answer.calls[step.call]
            function = CalledFunction(name=step.text, arguments="")
            fragment = ToolCall(index=step.call, id=call.id, type="function", function=function)
            delta = Delta(role=role, tool_calls=[fragment])
        case Part.ARGUMENTS:
            fragment = ToolCall(index=step.call, function=CalledFunction(arguments=step.text))
            delta = Delta(role=role, tool_calls=[fragment])
    has_logprobs = step.part is Part.CONTENT
    return ChunkChoice(
        delta=delta, logprobs=logprobs_of(exchange.body, step) if has_logprobs else None
    )


def _chunk(
    exchange: Exchange,
    choice: ChunkChoice | None = None,
    *,
    final: bool = False,
    last: bool = False,
    big: bool = False,
) -> bytes:
    """Encode one chunk; ``final`` adds the usage, ``last`` the fingerprint, ``big`` two megabytes."""
    padded = big and FaultName.BIG_FRAME in exchange.faults
    return msgspec.json.encode(
        Chunk(
            id=exchange.entry.id,
            created=exchange.created,
            model=exchange.body.model,
            choices=[choice] if choice else [],
            usage=exchange.usage(final=final) if final or exchange.running_usage else UNSET,
            system_fingerprint=FINGERPRINT if last else UNSET,
            padding="x" * BIG_FRAME_BYTES if padded else UNSET,
        )
    )


async def answer_whole(exchange: Exchange) -> None:
    """Send the completion when all of it is produced. Raises ``Broken`` when a fault ended it."""
    await asyncio.sleep(exchange.pace.first)
    steps = [step async for step in exchange.produce()]
    await send_whole(exchange, msgspec.json.encode(_completion(exchange, steps)))


async def send_whole(exchange: Exchange, content: bytes) -> None:
    """Send the body ``content``, with the faults of its bytes. Raises ``Broken``."""
    if FaultName.GARBAGE in exchange.faults:
        content = content[:-2]
    if FaultName.BOM in exchange.faults:
        content = b"\xef\xbb\xbf" + content
    headers = [(b"content-type", b"application/json")]
    if FaultName.SPLIT_BYTES not in exchange.faults:  # without a length each write is a chunk
        headers.append((b"content-length", str(len(content)).encode()))
    await exchange.send({"type": "http.response.start", "status": 200, "headers": headers})
    await _break_midway(exchange, content)
    if FaultName.SPLIT_BYTES in exchange.faults:
        for byte in content[:-1]:
            await exchange.send(
                {"type": "http.response.body", "body": bytes([byte]), "more_body": True}
            )
            await asyncio.sleep(0)
        content = content[-1:]
    await exchange.send({"type": "http.response.body", "body": content})


async def _break_midway(exchange: Exchange, content: bytes) -> None:
    """Apply ``cut@N``, ``reset@N`` and ``hang@N`` after half of the body, whatever N is."""
    for name in (FaultName.CUT, FaultName.RESET, FaultName.HANG):
        if name in exchange.faults:
            half = content[: len(content) // 2]
            await exchange.send({"type": "http.response.body", "body": half, "more_body": True})
            if name is FaultName.HANG:
                await asyncio.Event().wait()
            await asyncio.sleep(0)  # send the half before a reset drops it
            break_connection(exchange.transport, reset=name is FaultName.RESET)


def _completion(exchange: Exchange, steps: list[Step]) -> Completion:
    answer, faults = exchange.answer, exchange.faults
    message = AnswerMessage(
        content=_content(answer, steps),
        tool_calls=tool_calls(answer, steps),
        reasoning_content=joined(steps, Part.REASONING) or None,
    )
    choice = CompletionChoice(
        message=message,
        finish_reason=None if FaultName.NO_FINISH in faults else answer.finish,
        logprobs=logprobs_of(exchange.body, *steps),
    )
    return Completion(
        id=exchange.entry.id,
        created=exchange.created,
        model=exchange.body.model,
        choices=[choice],
        usage=exchange.usage() if exchange.final_usage else UNSET,
        system_fingerprint=FINGERPRINT,
        padding="x" * BIG_FRAME_BYTES if FaultName.BIG_FRAME in faults else UNSET,
    )


def _content(answer: Answer, steps: list[Step]) -> str | None:
    content = joined(steps, Part.CONTENT)
    absent = answer.calls or answer.finish is Finish.LENGTH
    return None if absent and not content else content


def tool_calls(answer: Answer, steps: list[Step]) -> list[ToolCall]:
    """Return the calls made up by ``steps``; a token cap may have cut the last one."""
    return [
        ToolCall(
            id=answer.calls[named.call].id,
            type="function",
            function=CalledFunction(
                name=named.text,
                arguments="".join(
                    step.text
                    for step in steps
                    if step.part is Part.ARGUMENTS and step.call == named.call
                ),
            ),
        )
        for named in steps
        if named.part is Part.CALL
    ]


def joined(steps: list[Step], part: Part) -> str:
    """Return the text of all ``steps`` of one kind."""
    return "".join(step.text for step in steps if step.part is part)
