"""Sends answers in the form of a dialect: a stream (role chunk, a frame per step, finish chunk, usage
chunk, ``[DONE]``) or a whole answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from inference.wire.dialects import RunningUsage
from simulators.chat.answers.answer import Answer, Finish, Part, Step, logprobs_of
from simulators.chat.dialects import Calls, Opening
from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName
from simulators.chat.frames import Frames, send_whole, strike

BIG_FRAME_BYTES = 2 * 1024 * 1024
_CACHED_TOKENS = 3
"""The tokens of each prompt that llama.cpp reports as cached."""


def usage_of(exchange: Exchange, *, final: bool = True) -> dict[str, Any]:
    """Return the ``usage`` so far."""
    tokens, dialect = exchange.usage(final=final), exchange.dialect
    usage = {
        "prompt_tokens": tokens.prompt,
        "total_tokens": tokens.prompt + tokens.output,
        "completion_tokens": tokens.output,
        **dialect.usage_members,
    }
    if exchange.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": exchange.cached_tokens}
    if dialect.reports_reasoning and tokens.reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens.reasoning}
    return usage


def running_usage_of(exchange: Exchange) -> dict[str, Any]:
    """Return the members with running usage that a chunk has beside its choice."""
    if exchange.dialect.running_usage is RunningUsage.LLAMA_CPP:
        return {"timings": timings_of(exchange, final=False)}
    return {"usage": usage_of(exchange, final=False)}


def timings_of(exchange: Exchange, *, final: bool = True) -> dict[str, Any]:
    """Return llama.cpp's ``timings``: the prompt is ``cache_n`` plus ``prompt_n``."""
    tokens = exchange.usage(final=final)
    cached = min(_CACHED_TOKENS, tokens.prompt)
    return {
        "cache_n": cached,
        "prompt_n": tokens.prompt - cached,
        "prompt_ms": 12.5,
        "prompt_per_token_ms": 1.25,
        "prompt_per_second": 800.0,
        "predicted_n": tokens.output,
        "predicted_ms": 25.0,
        "predicted_per_token_ms": 2.5,
        "predicted_per_second": 400.0,
    }


_ROLE = {"role": "assistant"}
_OPENINGS: Mapping[Opening, dict[str, Any]] = {
    Opening.EMPTY_CONTENT: {**_ROLE, "content": ""},
    Opening.NULL_CONTENT: {**_ROLE, "content": None},
}


async def answer_streamed(exchange: Exchange) -> None:
    """Send the whole stream. Raises ``Broken`` when a fault ended it."""
    faults, dialect = exchange.faults, exchange.dialect
    frames, chunks = Frames(exchange), _Chunks(exchange)

    async def fail() -> None:
        said = dialect.in_band_error
        body = chunks.of_nothing() if said.body is None else msgspec.json.encode(said.body)
        await frames.add(body, said.field)
        if said.usage_after and exchange.final_usage:
            await frames.add(chunks.of_usage())
        await frames.end(done=said.done_after)

    await frames.begin(*dialect.headers)
    await asyncio.sleep(exchange.pace.first)
    if FaultName.EMPTY_CHOICES_FIRST in faults:
        await frames.add(chunks.without_choices())
    if (delta := _OPENINGS.get(dialect.opening)) is not None:
        await frames.add(chunks.of_opening(delta))
    await strike(exchange, frames, 0, fail)
    number = 0
    async for step in exchange.produce():
        if (chunk := chunks.of_step(step, number)) is not None:
            await frames.add(chunk)
        number += 1
        await strike(exchange, frames, number, fail)
    if not chunks.finished and FaultName.NO_FINISH not in faults:
        await frames.add(chunks.of_finish())
    if exchange.final_usage:
        for _ in range(2 if FaultName.USAGE_TWICE in faults else 1):
            await frames.add(chunks.of_usage())
    await frames.end(
        done=FaultName.NO_DONE not in faults,
        then=chunks.without_choices() if FaultName.AFTER_DONE in faults else None,
    )
    if dialect.closes_after_streams:
        exchange.transport.close()


class _Chunks:
    """The JSON of one stream's chunks. ``finished``: one of them had the finish reason."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._dialect = dialect = exchange.dialect
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
            padded=place == 0 and FaultName.BIG_FRAME in self._exchange.faults,
        )

    def of_finish(self) -> bytes:
        delta = {} if "role" in self._dialect.delta_members else dict(self._dialect.delta_members)
        delta.pop("content", None)
        return self._encoded(delta, finish=str(self._exchange.answer.finish))

    def of_usage(self) -> bytes:
        """Return the final usage, in a chunk without choices."""
        figures: dict[str, Any] = {"usage": usage_of(self._exchange)}
        if self._dialect.running_usage is RunningUsage.LLAMA_CPP:
            figures["timings"] = timings_of(self._exchange)
        return msgspec.json.encode({**self._head(ends=True), "choices": [], **figures})

    def without_choices(self) -> bytes:
        """Return a chunk that says nothing, with the running usage if that is sent."""
        chunk = {**self._head(), "choices": []}
        if self._exchange.running_usage:
            chunk |= running_usage_of(self._exchange)
        return msgspec.json.encode(chunk)

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
        if not self._begun or FaultName.REPEAT_ROLE in self._exchange.faults:
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
        padded: bool = False,
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
        chunk = {**self._head(ends=finish is not None), "choices": [choice]}
        if counted and self._exchange.running_usage:
            chunk |= running_usage_of(self._exchange)
        if padded:
            chunk["padding"] = "x" * BIG_FRAME_BYTES
        return msgspec.json.encode(chunk)

    def _head(self, *, ends: bool = False) -> dict[str, Any]:
        """``ends``: the chunk has the finish reason or the final usage."""
        exchange, dialect = self._exchange, self._dialect
        head = {
            "id": exchange.entry.id,
            "object": "chat.completion.chunk",
            "created": exchange.created,
            "model": exchange.body.model,
        }
        if dialect.fingerprint is not None and (ends or not dialect.fingerprint_ends_stream):
            head["system_fingerprint"] = dialect.fingerprint.format(model=exchange.body.model)
        return head


async def answer_whole(exchange: Exchange) -> None:
    """Send the completion when all of it is produced. Raises ``Broken`` when a fault ended it."""
    await asyncio.sleep(exchange.pace.first)
    steps = [step async for step in exchange.produce()]
    await send_whole(exchange, msgspec.json.encode(_completion(exchange, steps)))


def _completion(exchange: Exchange, steps: list[Step]) -> dict[str, Any]:
    dialect, answer = exchange.dialect, exchange.answer
    message = {"role": "assistant", "content": None, **dialect.message_members}
    content = _joined(steps, Part.CONTENT)
    if content or not (answer.calls or answer.finish is Finish.LENGTH):
        message["content"] = content
    if reasoning := _joined(steps, Part.REASONING):
        message[dialect.reasoning_field] = reasoning
    if calls := _tool_calls(answer, steps):
        message["tool_calls"] = calls
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        **dialect.choice_members,
        "finish_reason": None,
    }
    if FaultName.NO_FINISH not in exchange.faults:
        choice |= {"finish_reason": answer.finish, **dialect.finish_members}
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
        completion["usage"] = usage_of(exchange)
    if dialect.running_usage is RunningUsage.LLAMA_CPP:
        completion["timings"] = timings_of(exchange)
    if FaultName.BIG_FRAME in exchange.faults:
        completion["padding"] = "x" * BIG_FRAME_BYTES
    return completion


def _tool_calls(answer: Answer, steps: list[Step]) -> list[dict[str, Any]]:
    """Return the calls made up by ``steps``; a token cap may have cut the last one."""
    calls = []
    for named in steps:
        if named.part is Part.CALL:
            own = [each for each in steps if each.call == named.call]
            function = {"name": named.text, "arguments": _joined(own, Part.ARGUMENTS)}
            calls.append(
                {"id": answer.calls[named.call].id, "type": "function", "function": function}
            )
    return calls


def _joined(steps: list[Step], part: Part) -> str:
    return "".join(step.text for step in steps if step.part is part)
