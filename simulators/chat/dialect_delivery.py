"""Sends streamed and whole answers in the form of a dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from inference.wire.dialects import RunningUsage
from simulators.chat.answers.answer import Part, Step, logprobs_of
from simulators.chat.delivery import Frames, joined, send_whole, strike, tool_calls
from simulators.chat.dialects import Calls, Dialect, Opening
from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName

_CACHED_TOKENS = 3
"""The tokens of each prompt that llama.cpp reports as cached."""


def usage_of(exchange: Exchange, dialect: Dialect, *, final: bool = True) -> dict[str, Any]:
    """Return the ``usage`` so far."""
    figures = exchange.usage(final=final)
    return {
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "total_tokens": figures.total_tokens,
        **dialect.usage_members,
    }


def running_usage_of(exchange: Exchange, dialect: Dialect) -> dict[str, Any]:
    """Return the members with running usage that a chunk has beside its choice."""
    if dialect.running_usage is RunningUsage.LLAMA_CPP:
        return {"timings": timings_of(exchange, final=False)}
    return {"usage": usage_of(exchange, dialect, final=False)}


def timings_of(exchange: Exchange, *, final: bool = True) -> dict[str, Any]:
    """Return llama.cpp's ``timings``: the prompt is ``cache_n`` plus ``prompt_n``."""
    figures = exchange.usage(final=final)
    cached = min(_CACHED_TOKENS, figures.prompt_tokens)
    return {
        "cache_n": cached,
        "prompt_n": figures.prompt_tokens - cached,
        "prompt_ms": 12.5,
        "prompt_per_token_ms": 1.25,
        "prompt_per_second": 800.0,
        "predicted_n": figures.completion_tokens,
        "predicted_ms": 25.0,
        "predicted_per_token_ms": 2.5,
        "predicted_per_second": 400.0,
    }


_ROLE = {"role": "assistant"}
_OPENINGS: Mapping[Opening, dict[str, Any]] = {
    Opening.EMPTY_CONTENT: {**_ROLE, "content": ""},
    Opening.NULL_CONTENT: {**_ROLE, "content": None},
}


async def answer_dialect_streamed(exchange: Exchange, dialect: Dialect) -> None:
    """Send the whole stream. Raises ``Broken`` when a fault ended it."""
    frames, chunks = Frames(exchange), _Chunks(exchange, dialect)

    async def fail() -> None:
        said = dialect.in_band_error
        body = chunks.of_nothing() if said.body is None else msgspec.json.encode(said.body)
        await frames.add(body, said.field)
        if said.usage_after and exchange.final_usage:
            await frames.add(chunks.of_usage())
        await frames.end(done=said.done_after)

    await frames.begin(*dialect.headers)
    await asyncio.sleep(exchange.pace.first)
    if (delta := _OPENINGS.get(dialect.opening)) is not None:
        await frames.add(chunks.of_opening(delta))
    await strike(exchange, frames, 0, fail)
    number = 0
    async for step in exchange.produce():
        if (chunk := chunks.of_step(step, number)) is not None:
            await frames.add(chunk)
        number += 1
        await strike(exchange, frames, number, fail)
    if not chunks.finished and FaultName.NO_FINISH not in exchange.faults:
        await frames.add(chunks.of_finish())
    if exchange.final_usage:
        for _ in range(2 if FaultName.USAGE_TWICE in exchange.faults else 1):
            await frames.add(chunks.of_usage())
    await frames.end(done=FaultName.NO_DONE not in exchange.faults)
    if dialect.closes_after_streams:
        exchange.transport.close()


class _Chunks:
    """The JSON of one stream's chunks. ``finished``: one of them had the finish reason."""

    def __init__(self, exchange: Exchange, dialect: Dialect) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self._steps = exchange.answer.steps
        self._begun = dialect.opening is not Opening.WITH_FIRST_TOKEN
        self._call: list[str] = []
        self.finished = False

    def of_opening(self, delta: dict[str, Any]) -> bytes:
        # llama.cpp's timings are on the chunk of the first token, which is sent with this one.
        timed = self._dialect.running_usage is RunningUsage.LLAMA_CPP
        return self._encoded({**self._dialect.delta_members, **delta}, counted=not timed)

    def of_step(self, step: Step, place: int) -> bytes | None:
        """Return the chunk of the step at ``place``; None while a whole tool call is collected."""
        delta = self._delta(step, place)
        if delta is None:
            return None
        is_last = place + 1 == len(self._steps)
        finishes = (
            is_last
            and self._dialect.finishes_with_text
            and FaultName.NO_FINISH not in self._exchange.faults
        )
        logprobs = logprobs_of(self._exchange.body, step) if step.part is Part.CONTENT else None
        return self._encoded(
            delta,
            {"logprobs": logprobs} if logprobs is not None else None,
            finish=str(self._exchange.answer.finish) if finishes else None,
        )

    def of_finish(self) -> bytes:
        delta = {} if "role" in self._dialect.delta_members else dict(self._dialect.delta_members)
        delta.pop("content", None)
        return self._encoded(delta, finish=str(self._exchange.answer.finish))

    def of_usage(self) -> bytes:
        """Return the final usage, in a chunk without choices."""
        figures: dict[str, Any] = {"usage": usage_of(self._exchange, self._dialect)}
        if self._dialect.running_usage is RunningUsage.LLAMA_CPP:
            figures["timings"] = timings_of(self._exchange)
        return msgspec.json.encode({**self._head(), "choices": [], **figures})

    def of_nothing(self) -> bytes:
        """Return an empty chunk without a model."""
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
        return msgspec.json.encode({**self._head(), "model": "", "choices": [choice]})

    def _delta(self, step: Step, place: int) -> dict[str, Any] | None:
        dialect = self._dialect
        delta = dict(dialect.delta_members)
        match step.part:
            case Part.REASONING:
                delta[dialect.reasoning_field] = step.text
            case Part.CONTENT:
                delta["content"] = step.text
            case Part.CALL | Part.ARGUMENTS:
                fragment = self._fragment(step, place)
                if fragment is None:
                    return None
                if dialect.calls is Calls.NULLS:
                    delta |= {"role": None, "content": None}
                delta["tool_calls"] = [fragment]
        if not self._begun:
            self._begun = True
            delta = {**_ROLE, **delta}
        return delta

    def _fragment(self, step: Step, place: int) -> dict[str, Any] | None:
        call = self._exchange.answer.calls[step.call]
        is_first = step.part is Part.CALL
        begin = {"index": step.call, "id": call.id, "type": "function"}
        match self._dialect.calls:
            case Calls.WHOLE:
                self._call.append("" if is_first else step.text)
                after = self._steps[place + 1 : place + 2]
                if after and after[0].part is Part.ARGUMENTS:
                    return None
                arguments, self._call = "".join(self._call), []
                if not self._dialect.calls_have_index:
                    del begin["index"]
                return {**begin, "function": {"name": call.name, "arguments": arguments}}
            case _ if is_first:
                return {**begin, "function": {"name": call.name, "arguments": ""}}
            case Calls.PIECES:
                return {"index": step.call, "function": {"arguments": step.text}}
            case Calls.NULLS:
                function = {"name": None, "arguments": step.text}
                return {**begin, "id": None, "function": function}
            case Calls.EMPTY_NAMES:
                function = {"name": "", "arguments": step.text}
                return {"index": step.call, "type": "function", "function": function}

    def _encoded(
        self,
        delta: dict[str, Any],
        members: dict[str, Any] | None = None,
        *,
        finish: str | None = None,
        counted: bool = True,
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "finish_reason": None,
            **self._dialect.choice_members,
            **(members or {}),
        }
        if finish is not None:
            self.finished = True
            choice |= {"finish_reason": finish, **self._dialect.finish_members}
        chunk = {**self._head(), "choices": [choice]}
        if counted and self._exchange.running_usage:
            chunk |= running_usage_of(self._exchange, self._dialect)
        return msgspec.json.encode(chunk)

    def _head(self) -> dict[str, Any]:
        exchange = self._exchange
        head = {
            "id": exchange.entry.id,
            "object": "chat.completion.chunk",
            "created": exchange.created,
            "model": exchange.body.model,
        }
        if self._dialect.fingerprint is not None:
            head["system_fingerprint"] = self._dialect.fingerprint.format(model=exchange.body.model)
        return head


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
