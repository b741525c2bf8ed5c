"""Users of a model, each in a closed loop: seeded, and the same in front of every gateway."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol

from benchmarks.placement.engine import BLOCK_TOKENS, TOKEN_BYTES, block_names, prompt_of

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; ``first`` is when its first text arrived, in the clock's seconds."""

    first: float
    text: str
    prompt_tokens: int
    cached_tokens: int


class Ask(Protocol):
    """Sends a request for a tenant. Raises ``ConnectionError`` when there is no answer."""

    def __call__(self, tenant: int, body: Body) -> Awaitable[Answer]: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """What users of one kind send; sizes are in tokens, ``pause`` in seconds on average."""

    apps: int
    """Applications, each with a system prompt of its own."""
    system: int
    first: int
    turns: int
    each: int
    """The user's words of a later turn."""
    output: int
    pause: float
    popular: float = 0.0
    """The exponent of Zipf's law for the applications."""
    tools: bool = False


SHAPES: Final = {
    "conv": Shape(apps=4, system=400, first=600, turns=10, each=250, output=48, pause=0.3),
    "shared": Shape(
        apps=20, system=2000, first=120, turns=1, each=0, output=32, pause=0.02, popular=1.0
    ),
    "agents": Shape(
        apps=5, system=2000, first=800, turns=50, each=150, output=24, pause=0.05, tools=True
    ),
    "small": Shape(apps=2, system=60, first=240, turns=6, each=60, output=16, pause=0.3),
    "none": Shape(apps=0, system=0, first=1000, turns=1, each=0, output=48, pause=0.02),
}
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Use it to {name.replace('_', ' ')} in the working directory.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
    for name in ("read_file", "write_file", "list_files", "run_tests", "search_text")
]


@dataclass(frozen=True, slots=True)
class Seen:
    """One answered request: when, its times in seconds, its tokens."""

    tenant: int
    at: float
    first: float
    whole: float
    prompt: int
    cached: int
    ideal: int
    output: int


@dataclass
class Run:
    """Users of one workload; ``clock`` and ``sleep`` are in the model's seconds."""

    seed: str
    seconds: float
    ask: Ask
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    seen: list[Seen] = field(default_factory=list)
    failures: int = 0
    _known: set[bytes] = field(default_factory=set)

    async def workload(self, name: str, users: int, tenants: int = 1) -> None:
        """Run ``users`` of ``name``; ``fair`` is agents of one tenant beside 12 talkers of three."""
        if name == "fair":
            each = [self._user("agents", users, number, 0) for number in range(users)]
            each += [self._user("conv", users, number, 1 + number % 3) for number in range(12)]
        else:
            each = [self._user(name, users, number, number % tenants) for number in range(users)]
        await asyncio.gather(*each)

    def ideal(self, body: Body) -> int:
        """The tokens of a request that an endless cache would have."""
        prompt = prompt_of(body)
        names = block_names(prompt, b"")
        known = next((at for at, name in enumerate(names) if name not in self._known), len(names))
        self._known.update(names)
        return min(
            known * BLOCK_TOKENS, (len(prompt) // TOKEN_BYTES - 1) // BLOCK_TOKENS * BLOCK_TOKENS
        )

    async def _user(self, name: str, users: int, number: int, tenant: int) -> None:
        shape = SHAPES[name]
        chance = random.Random(f"{self.seed}/{name}/{users}/{number}")
        weights = [1 / (rank + 1) ** shape.popular for rank in range(shape.apps)]
        await self.sleep(chance.random() * min(1.0, self.seconds / 4))
        conversation = 0
        while self.clock() < self.seconds:
            conversation += 1
            me = f"{self.seed}/{name}/{users}/{number}/{conversation}"
            messages: list[dict[str, str]] = []
            if shape.apps:
                app = chance.choices(range(shape.apps), weights)[0]
                system = words(f"{self.seed}/{name}/{users}/{app}/system", shape.system)
                messages.append({"role": "system", "content": system})
            messages.append({"role": "user", "content": words(f"{me}/0", shape.first)})
            start = 0
            if conversation == 1 and shape.turns > 1:
                # Users are somewhere in their conversations when the run begins.
                start = chance.randrange(shape.turns)
                for turn in range(1, start + 1):
                    answer = words(f"{me}/a{turn}", shape.output)
                    messages.append({"role": "assistant", "content": answer})
                    messages.append({"role": "user", "content": words(f"{me}/{turn}", shape.each)})
            await self._converse(shape, tenant, me, messages, start, chance)
            await self.sleep(chance.random() * shape.pause)

    async def _converse(
        self,
        shape: Shape,
        tenant: int,
        me: str,
        messages: list[dict[str, str]],
        start: int,
        chance: random.Random,
    ) -> None:
        for turn in range(start, shape.turns):
            body: Body = {"model": "m", "messages": messages, "max_tokens": shape.output}
            body |= {"stream": True, "stream_options": {"include_usage": True}}
            if shape.tools:
                body["tools"] = _TOOLS
            answer = await self._answer(tenant, body, shape.output)
            if answer is None:
                return
            messages.append({"role": "assistant", "content": answer})
            await self.sleep(chance.expovariate(1 / shape.pause))
            if self.clock() >= self.seconds:
                return
            messages.append({"role": "user", "content": words(f"{me}/{turn + 1}", shape.each)})

    async def _answer(self, tenant: int, body: Body, output: int) -> str | None:
        """Ask until there is an answer, three times at most."""
        ideal, begun = self.ideal(body), self.clock()
        for attempt in range(3):
            try:
                answer = await self.ask(tenant, body)
            except ConnectionError:
                self.failures += 1
                await self.sleep(0.2 * (attempt + 1))
                continue
            now = self.clock()
            self.seen.append(
                Seen(
                    tenant,
                    now,
                    answer.first - begun,
                    now - begun,
                    answer.prompt_tokens,
                    answer.cached_tokens,
                    ideal,
                    output,
                )
            )
            return answer.text
        return None


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a run: the parts of all tokens that were cached and could have been; times until the
    first text in milliseconds; tokens a second."""

    requests: int
    cached: float
    ideal: float
    p50: float
    p90: float
    p99: float
    output: float
    input: float

    def __str__(self) -> str:
        return (
            f"{self.cached:.2f} of {self.ideal:.2f}; {self.p50:4.0f} / {self.p90:4.0f} / "
            f"{self.p99:4.0f} ms; {self.output:5.0f} tokens/s"
        )


def summary(seen: list[Seen], seconds: float) -> Summary:
    """The figures of what was seen in ``seconds``."""
    first = sorted(each.first * 1000 for each in seen) or [0.0]
    prompt = max(sum(each.prompt for each in seen), 1)
    p50, p90, p99 = (first[min(len(first) - 1, int(len(first) * at))] for at in (0.5, 0.9, 0.99))
    return Summary(
        len(seen),
        sum(each.cached for each in seen) / prompt,
        sum(each.ideal for each in seen) / prompt,
        p50,
        p90,
        p99,
        sum(each.output for each in seen) / seconds,
        prompt / seconds,
    )


@lru_cache(maxsize=4096)
def words(seed: str, tokens: int) -> str:
    """Text of ``tokens`` tokens, each of four bytes."""
    chance = random.Random(seed)
    return "".join(f"{chance.getrandbits(12):03x} " for _ in range(tokens))


def encoded(body: Body) -> bytes:
    """The bytes of a request."""
    return json.dumps(body).encode()
