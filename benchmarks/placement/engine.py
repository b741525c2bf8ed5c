"""A model of one model server: continuous batching, chunked prefill and an automatic prefix cache.

No tensor is computed. A step of the engine takes ``step`` + decoding sequences x ``sequence`` + prefilled
tokens x ``token`` milliseconds, which lies between published figures of an A100 and an H100 with an 8B
model (docs/explain/placement.md). Not modelled: attention whose cost grows with the context, preemption,
and caches below the GPU's memory.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

BLOCK_TOKENS: Final = 16
TOKEN_BYTES: Final = 4
_BLOCK: Final = BLOCK_TOKENS * TOKEN_BYTES


@dataclass(frozen=True, slots=True)
class Card:
    """What a replica can do; times are in milliseconds."""

    batch: int = 32
    """Sequences that run at once."""
    blocks: int = 4096
    """Blocks of its cache: 65 536 tokens."""
    step_tokens: int = 2048
    """Tokens of one step, of prompts and of running sequences together."""
    step: float = 8.0
    sequence: float = 0.06
    token: float = 0.05
    slow: float = 1.0
    """So many times slower than the others."""


def prompt_of(body: dict[str, Any]) -> bytes:
    """What a chat template makes of a request: each turn begins with the one before and its answer."""
    parts = [json.dumps(body["tools"]).encode()] if body.get("tools") else []
    for message in body["messages"]:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content)
        parts.append(f"<{message['role']}>{content}</>".encode())
    return b"".join(parts) + b"<assistant>"


def block_names(text: bytes, salt: bytes) -> list[bytes]:
    """The names of the full blocks of ``text``; each depends on all before it."""
    name, names = salt, []
    for at in range(0, len(text) - _BLOCK + 1, _BLOCK):
        name = blake2b(name + text[at : at + _BLOCK], digest_size=12).digest()
        names.append(name)
    return names


class Blocks:
    """The cache: blocks that running sequences use, and idle ones, of which the oldest go first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.users: dict[bytes, int] = {}
        self.idle: OrderedDict[bytes, None] = OrderedDict()
        self.unnamed = 0
        """Blocks of running sequences that are not full."""
        self.evicted = 0

    def known(self, names: list[bytes]) -> int:
        """How many of ``names``, from the first, are there."""
        for count, name in enumerate(names):
            if name not in self.users and name not in self.idle:
                return count
        return len(names)

    def fits(self, names: list[bytes], blocks: int) -> bool:
        """Whether a sequence of ``blocks`` fits, of which ``names`` are there."""
        idle = sum(name in self.idle for name in names)
        return len(self.users) + self.unnamed + idle + blocks - len(names) <= self.size

    def use(self, names: Iterable[bytes]) -> None:
        for name in names:
            self.idle.pop(name, None)
            self.users[name] = self.users.get(name, 0) + 1
        self._evict()

    def leave(self, names: Iterable[bytes]) -> None:
        for name in names:
            left = self.users[name] - 1
            if left:
                self.users[name] = left
            else:
                del self.users[name]
                self.idle[name] = None
        self._evict()

    def hold(self, blocks: int) -> None:
        self.unnamed += blocks
        self._evict()

    def _evict(self) -> None:
        while self.idle and len(self.users) + self.unnamed + len(self.idle) > self.size:
            self.idle.popitem(last=False)
            self.evicted += 1


@dataclass(eq=False, slots=True)
class Running:
    """One request; ``progress`` gets the number of tokens that were generated, then None."""

    prompt: bytes
    salt: bytes
    output: int
    names: list[bytes]
    progress: asyncio.Queue[int | None] = field(default_factory=asyncio.Queue)
    tokens: int = 0
    cached: int = 0
    computed: int = 0
    generated: int = 0
    used: list[bytes] = field(default_factory=list)
    held: int = 0
    gone: bool = False
    """Whether its client disconnected."""

    def text(self, first: int, last: int) -> str:
        """Its answer from token ``first`` to ``last``: the same for the same prompt."""
        seed = blake2b(self.prompt, digest_size=8).hexdigest()
        return "".join(f"{seed[at % 16]}{at % 1000:03d}" for at in range(first, last))


class Engine:
    """A replica, with the clock of its event loop."""

    def __init__(self, card: Card, clock: Callable[[], float], scale: float = 1.0) -> None:
        self.card = card
        self._clock = clock
        self._scale = scale
        self._awake = asyncio.Event()
        self.blocks = Blocks(card.blocks)
        self.waiting: deque[Running] = deque()
        self.running: list[Running] = []
        self.requests = self.prompt_tokens = self.cached_tokens = 0
        self.most_at_once = 0

    def submit(self, body: dict[str, Any]) -> Running:
        """Queue a request."""
        prompt = prompt_of(body)
        salt = str(body.get("cache_salt") or "").encode()
        output = body.get("max_completion_tokens") or body.get("max_tokens") or 16
        made = Running(prompt, salt, int(output), block_names(prompt, salt))
        made.tokens = max(1, -(-len(prompt) // TOKEN_BYTES))
        self.requests += 1
        self.waiting.append(made)
        self.most_at_once = max(self.most_at_once, len(self.waiting) + len(self.running))
        self._awake.set()
        return made

    async def run(self) -> None:
        """Run the engine until it is cancelled."""
        due = self._clock()
        while True:
            if not self.running and not self.waiting:
                self._awake.clear()
                await self._awake.wait()
                due = self._clock()
            prefilled, told = self._step()
            card = self.card
            milliseconds = card.step + len(told) * card.sequence + prefilled * card.token
            due = max(due + milliseconds * card.slow * self._scale / 1000, self._clock() - 0.05)
            await asyncio.sleep(max(0.0, due - self._clock()))
            for each in told:
                self._tell(each)

    def _step(self) -> tuple[int, list[Running]]:
        """Compute one step; return its prefilled tokens, and the sequences that get a token of it."""
        for each in [each for each in self.running if each.gone]:
            self._end(each)
        told = [each for each in self.running if each.computed >= each.tokens]
        left = self.card.step_tokens - len(told)
        prefilled = 0
        for each in [each for each in self.running if each.computed < each.tokens]:
            prefilled += self._prefill(each, left - prefilled, told)
        while self.waiting and prefilled < left and len(self.running) < self.card.batch:
            if not self.waiting[0].gone:
                if not self._start(self.waiting[0]):
                    break
                self.running.append(self.waiting[0])
                prefilled += self._prefill(self.waiting[0], left - prefilled, told)
            self.waiting.popleft()
        return prefilled, told

    def _start(self, each: Running) -> bool:
        known = each.names[: self.blocks.known(each.names)]
        # The last token of a prompt is always computed.
        known = known[: (each.tokens - 1) // BLOCK_TOKENS]
        blocks = -(-(each.tokens + each.output) // BLOCK_TOKENS)
        if not self.blocks.fits(known, blocks) and self.running:
            return False
        self.blocks.use(known)
        each.used, each.held = known, blocks - len(known)
        self.blocks.hold(each.held)
        each.cached = each.computed = len(known) * BLOCK_TOKENS
        self.prompt_tokens += each.tokens
        self.cached_tokens += each.cached
        return True

    def _prefill(self, each: Running, budget: int, told: list[Running]) -> int:
        part = min(budget, each.tokens - each.computed)
        each.computed += part
        if part and each.computed >= each.tokens:
            # Its full blocks can be shared from now on.
            self._name(each, each.names)
            told.append(each)
        return part

    def _name(self, each: Running, names: list[bytes]) -> None:
        new = names[len(each.used) :]
        self.blocks.use(new)
        self.blocks.hold(-min(len(new), each.held))
        each.held = max(each.held - len(new), 0)
        each.used = each.used + new

    def _tell(self, each: Running) -> None:
        each.generated += 1
        each.progress.put_nowait(each.generated)
        if each.generated >= each.output:
            whole = each.prompt + each.text(0, each.generated).encode()
            self._name(each, block_names(whole, each.salt))
            self._end(each)
            each.progress.put_nowait(None)

    def _end(self, each: Running) -> None:
        if each in self.running:
            self.running.remove(each)
            self.blocks.hold(-each.held)
            # The end of a prompt goes before its beginning.
            self.blocks.leave(reversed(each.used))
