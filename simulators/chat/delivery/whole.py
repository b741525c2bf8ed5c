"""Sends a whole answer, with its faults."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import UNSET

from simulators.chat.answers.answer import Answer, Finish, Part, Step
from simulators.chat.answers.logprobs import logprobs_of
from simulators.chat.delivery.stream import BIG_FRAME_BYTES, FINGERPRINT
from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName
from simulators.chat.wire import (
    AnswerMessage,
    CalledFunction,
    Completion,
    CompletionChoice,
    ToolCall,
)
from simulators.serving import break_connection


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
