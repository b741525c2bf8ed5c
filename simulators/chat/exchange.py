"""The state of one request: its body, its answer, and how much of it was produced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from inference.wire.dialects import RunningUsage
from simulators.chat.answers.answer import Answer, Part, Step
from simulators.chat.dialects import Dialect
from simulators.chat.faults import FaultName, Faults
from simulators.chat.options import Directive, Options
from simulators.chat.requests_log import RequestEntry
from simulators.chat.wire import ChatBody

ABSURD_TOKENS = 10**12
DECREASING_FROM = 1000
NEGATIVE_TOKENS = -5


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds to the first token, tokens per second after it (0: at once), frames per write."""

    first: float
    tokens_per_second: float
    burst: int

    @classmethod
    def of(cls, directive: Directive, options: Options) -> Pace:
        return cls(
            options.first_token_delay if directive.first is None else directive.first,
            options.tokens_per_second if directive.pace is None else directive.pace,
            directive.burst or 1,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens; those of reasoning are part of the output."""

    prompt: int
    output: int
    reasoning: int


@dataclass(slots=True)
class Exchange:
    """``send`` is ASGI's; ``transport`` is the connection under it, for faults that break it."""

    entry: RequestEntry
    created: int
    body: ChatBody
    answer: Answer
    faults: Faults
    pace: Pace
    dialect: Dialect
    running_usage: bool
    send: Any
    transport: asyncio.Transport
    cached_tokens: int | None = None
    """Tokens of the prompt that the server had; None: it does not report them."""
    reasoning_tokens: int = 0

    @property
    def final_usage(self) -> bool:
        """Whether the answer ends with its usage; for a stream the request must ask for it."""
        if FaultName.NO_USAGE in self.faults:
            return False
        asked = self.body.stream_options is not None and self.body.stream_options.include_usage
        return bool(asked or not self.body.stream or FaultName.USAGE_TWICE in self.faults)

    def usage(self, *, final: bool = True) -> Usage:
        """Return the usage so far: the tokens really produced, unless a fault changes them."""
        produced, prompt = self.entry.produced_tokens, self.entry.prompt_tokens
        if FaultName.NEGATIVE_USAGE in self.faults:
            produced = NEGATIVE_TOKENS
        elif FaultName.ABSURD_USAGE in self.faults:
            produced += ABSURD_TOKENS
        elif FaultName.DECREASING_USAGE in self.faults and not final:
            produced = DECREASING_FROM - produced
        return Usage(prompt, produced, self.reasoning_tokens)

    async def produce(self) -> AsyncIterator[Step]:
        """Yield the steps of the answer at the configured pace, the first one at once."""
        clock = asyncio.get_running_loop().time
        due = clock()
        for step in self.answer.steps:
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            self.entry.produced_tokens += step.tokens
            if step.part is Part.REASONING:
                self.reasoning_tokens += step.tokens
            if self.pace.tokens_per_second:
                due += step.tokens / self.pace.tokens_per_second
            yield step


def wants_running_usage(body: ChatBody, faults: Faults, dialect: Dialect, *, offered: bool) -> bool:
    """Whether every chunk carries token counts: requested in the dialect's way and ``offered``, or
    caused by a fault.
    """
    if FaultName.USAGE_EVERY_CHUNK in faults or FaultName.DECREASING_USAGE in faults:
        return True
    if not offered or FaultName.NO_USAGE in faults:
        return False
    match dialect.running_usage:
        case RunningUsage.VLLM:
            asked = body.stream_options
            return bool(asked and asked.include_usage and asked.continuous_usage_stats)
        case RunningUsage.LLAMA_CPP:
            return bool(body.timings_per_token)
        case RunningUsage.NONE | RunningUsage.AUTO:
            return False
