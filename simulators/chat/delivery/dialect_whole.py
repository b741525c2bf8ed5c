"""Sends a whole answer in the form of a dialect."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from inference.wire.dialects import RunningUsage
from simulators.chat.answers.answer import Part, Step
from simulators.chat.answers.logprobs import logprobs_of
from simulators.chat.delivery.dialect_usage import timings_of, usage_of
from simulators.chat.delivery.whole import joined, send_whole, tool_calls
from simulators.chat.dialects.definition import Dialect
from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName


async def answer_dialect_whole(exchange: Exchange, dialect: Dialect) -> None:
    """Send the completion when all of it is produced. Raises ``Broken`` when a fault ended it."""
    await asyncio.sleep(exchange.pace.first)
    steps = [step async for step in exchange.produce()]
    await send_whole(exchange, msgspec.json.encode(_completion(exchange, dialect, steps)))


def _completion(exchange: Exchange, dialect: Dialect, steps: list[Step]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **dialect.message_members}
    if content := joined(steps, Part.CONTENT):
        message["content"] = content
    if reasoning := joined(steps, Part.REASONING):
        message[dialect.reasoning_field] = reasoning
    if calls := tool_calls(exchange.answer, steps):
        message["tool_calls"] = calls
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        **dialect.choice_members,
        "finish_reason": None,
    }
    if FaultName.NO_FINISH not in exchange.faults:
        choice |= {"finish_reason": exchange.answer.finish, **dialect.finish_members}
    if (logprobs := logprobs_of(exchange.body, *steps)) is not None:
        choice["logprobs"] = logprobs
    completion: dict[str, Any] = {
        "id": exchange.entry.id,
        "object": "chat.completion",
        "created": exchange.created,
        "model": exchange.body.model,
        "choices": [choice],
        **dialect.whole_members,
    }
    if dialect.fingerprint is not None:
        completion["system_fingerprint"] = dialect.fingerprint.format(model=exchange.body.model)
    if exchange.final_usage:
        completion["usage"] = usage_of(exchange, dialect)
    if dialect.running_usage is RunningUsage.LLAMA_CPP:
        completion["timings"] = timings_of(exchange)
    return completion
