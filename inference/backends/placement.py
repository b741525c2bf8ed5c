"""Which of several model servers has the beginning of a prompt in its prefix cache, and which has least work.

Marks of prompts (``prompts``) are kept by organization, so that none learns or displaces what is known of
another's. The tokens that a server reports as cached correct what is known. docs/explain/placement.md has the
reasons and the measurements.

Work is in tokens of prompts that a server was sent and has not begun to answer: what stands before the
first token of the next request there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from core.backends import rendezvous
from inference.backends.prompts import SMALLEST_BYTES, Prompt

RUNNING_TOKENS: Final = 512.0
"""What a running answer costs those beside it, in tokens of a prompt."""
_LEAST_TOKENS: Final = 16.0
"""A block of a cache is always computed."""
_BYTES_PER_TOKEN: Final = 4.0
_STAY: Final = (1.5, 8.0)
"""A conversation stays at a server unless that has so many times the mean of running and waiting requests,
and so many more. A move computes its whole context again and displaces another's, which all pay for."""
_HOME: Final = (1.25, 2.0)
"""The same for a conversation's home, which is where other workers look for what they do not hear of."""
_SAME_COST: Final = (1.1, 64.0)
"""Costs up to so many times the least one, and so many tokens more, count as equal."""
_COPY_COST: Final = 3.0
"""What a token adds that another server has in its cache: the copy delays all that runs there, and displaces
what others sent."""
_LOST_COST: Final = 0.125
"""What a token that a server lost lately adds to the cost of new prompts there: they displace others."""
_LOST_HALF_LIFE: Final = 5.0
"""Seconds."""
_TOO_MUCH_LOST: Final = 16_000.0
"""Tokens lost lately above which a server's cache is too small for what it was sent."""
_LITTLE_LOST: Final = 0.25
"""A server that lost this part of what another lost, or less, has room for a conversation of that."""
_PART_TOKENS: Final = 2000.0
"""What a head is worth at the server whose part it is, where no cache is large enough for all heads."""
_CACHED: Final = 0.75
"""The least part of what was sent before that a server reports as cached, where it still has it."""
_MARKS: Final = 8192
"""The most of one organization: about 2 MB."""
_ALL_MARKS: Final = 65_536


@dataclass(slots=True)
class Use:
    """What a server was sent of a mark last: bytes, and when, in seconds."""

    size: int
    at: float
    missed: bool = False
    """Whether the server had to compute what it had been sent before."""


class Server:
    """What one worker knows of a model server: its unanswered work, and what its cache lost."""

    __slots__ = (
        "_lost",
        "_lost_at",
        "ejections",
        "forgotten",
        "moves",
        "number",
        "unanswered",
        "unanswered_tokens",
    )

    def __init__(self, backend_id: str) -> None:
        self.number = rendezvous.number_of(backend_id)
        self.unanswered = 0
        """Requests that it was sent and has not begun to answer."""
        self.unanswered_tokens = 0.0
        self.moves = 0
        """Conversations that it had and that went to another server."""
        self.forgotten = -1.0
        """What it was sent until then, in seconds, is gone."""
        self.ejections = 0
        """After so many it was told to forget."""
        self._lost = 0.0
        self._lost_at = 0.0

    def lost_lately(self, now: float) -> float:
        """The tokens that it was taken to have, and computed again; older ones count less."""
        if not self._lost:
            return 0.0
        return float(self._lost * 0.5 ** ((now - self._lost_at) / _LOST_HALF_LIFE))

    def lost(self, tokens: float, now: float) -> None:
        """Note that it had to compute ``tokens`` again."""
        self._lost = self.lost_lately(now) + tokens
        self._lost_at = now

    def forget(self, now: float) -> None:
        """Its cache is empty: it was restarted, or it is another server."""
        self.forgotten = now
        self._lost = 0.0

    def rank(self, home: int) -> int:
        """Its rank for ``home``; the highest of all servers is the home (rendezvous hashing)."""
        return rendezvous.rank(home, self.number)


class Placed:
    """A request that was sent to a server, and what it was taken to have of it."""

    __slots__ = ("begun", "have", "prompt", "server", "uncached", "use")

    def __init__(
        self, prompt: Prompt, server: Server, have: int, uncached: float, use: Use | None
    ) -> None:
        self.prompt = prompt
        self.server = server
        self.have = have
        """Bytes."""
        self.uncached = uncached
        """Tokens that it has to compute."""
        self.use = use
        self.begun = False


class Reason(StrEnum):
    """Why a request goes to a server."""

    WARM = "warm"
    """It has the conversation."""
    HOME = "home"
    """Other workers, which are not heard, look for the conversation there."""
    LOAD = "load"
    """It costs least there."""
    MOVED = "moved"
    """It costs least there, although another server has the conversation."""
    SHARE = "share"
    """The conversation falls into the server's share, where deployments have different weights."""


class Candidate(NamedTuple):
    """A server that may get a request; ``busy`` counts running and waiting requests of this worker."""

    server: Server
    busy: int


_Uses = dict[Server, Use]
_Marks = dict[int, _Uses]
"""Of one organization, those used least recently first."""


class Placement:
    """What one worker knows of prompts and servers. Belongs to one event loop.

    ``homes``: whether other workers send requests to the same servers and are not heard (``shared_marks``).
    New conversations then begin at their home, where the others look for them.
    """

    def __init__(self, *, homes: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.homes = homes
        self._clock = clock
        self._bytes_per_token = _BYTES_PER_TOKEN
        self._marks: dict[str, _Marks] = {}
        self._count = 0
        self._turn = 0

    def stays(self, prompt: Prompt, candidates: Sequence[Candidate]) -> int | None:
        """The index of the candidate that has the conversation.

        None of a first turn, where that is not known, where it has much more to do than the others, and
        where it lost the conversation once, as others of late, while another has room.
        """
        uses = self._earlier_uses(prompt)
        if not uses:
            return None
        best, latest, total = None, -1.0, 0
        for index, (server, busy) in enumerate(candidates):
            total += busy
            use = uses.get(server)
            if use is not None and use.at > latest and use.at > server.forgotten:
                best, latest = index, use.at
        if best is None:
            return None
        server, busy = candidates[best]
        if not _fits(busy, total / len(candidates), _STAY):
            return None
        if uses[server].missed:
            now = self._clock()
            lost = server.lost_lately(now)
            least = min(each.server.lost_lately(now) for each in candidates)
            if lost > _TOO_MUCH_LOST and least < _LITTLE_LOST * lost:
                return None
        return best

    def order(self, prompt: Prompt, candidates: Sequence[Candidate]) -> tuple[list[int], Reason]:
        """Return the indexes of ``candidates``, best first, and why the first is the best."""
        indexes = list(range(len(candidates)))
        now, per_token = self._clock(), self._bytes_per_token
        sent = self._sent(prompt)
        known = [_known(prompt, sent, server, now) for server, _ in candidates]
        most = max(known)
        costs = [
            (prompt.size - have + (most - have) * _COPY_COST) / per_token
            + server.unanswered_tokens
            + busy * RUNNING_TOKENS
            + server.lost_lately(now) * _LOST_COST
            for (server, busy), have in zip(candidates, known, strict=True)
        ]
        if not prompt.beginning:
            # Equal ones take turns.
            self._turn += 1
            turn, count = self._turn, len(candidates)
            indexes.sort(key=lambda at: (costs[at], (at + turn) % count))
            return indexes, Reason.LOAD
        ranks = [server.rank(prompt.home) for server, _ in candidates]
        reason = Reason.WARM
        first = self.stays(prompt, candidates)
        if first is None:
            first, reason = self._home(prompt, candidates, known, ranks)
        times, more = _SAME_COST
        same = min(costs) * times + more
        if (
            first is None
            and min(server.lost_lately(now) for server, _ in candidates) > _TOO_MUCH_LOST
        ):
            # No cache is large enough for all: each gets a part of the heads.
            same += _PART_TOKENS
            ranks = [server.rank(prompt.head) for server, _ in candidates]
        # Of those that cost about the same, the first in the order that all workers agree on.
        indexes.sort(key=lambda at: (at != first, max(costs[at], same), -ranks[at]))
        return indexes, reason

    def _home(
        self,
        prompt: Prompt,
        candidates: Sequence[Candidate],
        known: list[int],
        ranks: list[int],
    ) -> tuple[int | None, Reason]:
        """The index of the home of a conversation that this worker does not know, unless it is too busy."""
        if self._earlier_uses(prompt):
            return None, Reason.MOVED
        if not self.homes or max(known) >= 0.5 * prompt.size:
            return None, Reason.LOAD
        home = ranks.index(max(ranks))
        mean = sum(busy for _, busy in candidates) / len(candidates)
        if _fits(candidates[home].busy, mean, _HOME):
            return home, Reason.HOME
        return None, Reason.LOAD

    def count_move(self, prompt: Prompt) -> None:
        """Note that the conversation of ``prompt`` leaves the server that it was sent to last."""
        if uses := self._earlier_uses(prompt):
            max(uses, key=lambda server: uses[server].at).moves += 1

    def place(self, prompt: Prompt, server: Server) -> Placed:
        """Note that ``server`` is sent ``prompt``."""
        now = self._clock()
        have = _known(prompt, self._sent(prompt), server, now)
        uncached = max((prompt.size - have) / self._bytes_per_token, _LEAST_TOKENS)
        server.unanswered += 1
        server.unanswered_tokens += uncached
        use = None
        if prompt.beginning:
            use = self.remember(prompt.organization_id, prompt.marks, prompt.size, server)
        return Placed(prompt, server, have, uncached, use)

    def remember(
        self, organization_id: str, marks: Sequence[int], size: int, server: Server
    ) -> Use:
        """Note that ``server`` was sent a prompt of ``size`` bytes, by this worker or another one."""
        use = Use(size, self._clock())
        for mark in marks:
            self._note(organization_id, mark)[server] = use
        return use

    def answered(self, placed: Placed) -> None:
        """Note that the first token came, or that none will; only the first call counts."""
        if placed.begun:
            return
        placed.begun = True
        server = placed.server
        server.unanswered -= 1
        # The sum of fractions is inexact: nothing unanswered is nothing.
        left = server.unanswered_tokens - placed.uncached
        server.unanswered_tokens = max(left, 0.0) if server.unanswered else 0.0

    def learn(self, placed: Placed, prompt_tokens: int, cached: int | None) -> None:
        """Note the tokens of the prompt as reported; ``cached`` of them were (None: not reported)."""
        size = placed.prompt.size
        if placed.use is None or prompt_tokens <= 0:
            return
        measured = min(max(size / prompt_tokens, 1.0), 16.0)
        self._bytes_per_token += 0.02 * (measured - self._bytes_per_token)
        if cached is None:
            return
        lost = placed.have - cached * measured
        if lost > max((1 - _CACHED) * placed.have, SMALLEST_BYTES):
            placed.use.missed = True
            placed.server.lost(lost / measured, self._clock())

    def _sent(self, prompt: Prompt) -> list[tuple[_Uses, int]]:
        """Where each part of ``prompt`` was sent, and its bytes (0: its earlier turns), longest first."""
        marks = self._marks.get(prompt.organization_id)
        if not marks or not prompt.beginning:
            return []
        parts = [(prompt.conversation, 0)] if prompt.conversation is not None else []
        parts += reversed(prompt.beginning)
        return [(uses, size) for mark, size in parts if (uses := marks.get(mark)) is not None]

    def _earlier_uses(self, prompt: Prompt) -> _Uses | None:
        """Where earlier turns of the conversation were sent; the second has the beginning of the first."""
        if prompt.conversation is None and prompt.named is None:
            return None
        uses = self._uses(prompt.organization_id, prompt.named)
        if uses is None:
            uses = self._uses(prompt.organization_id, prompt.conversation)
        if uses is None and prompt.beginning:
            mark, size = prompt.beginning[-1]
            if size > 0.5 * prompt.earlier:
                uses = self._uses(prompt.organization_id, mark)
        return uses

    def _uses(self, organization_id: str, mark: int | None) -> _Uses | None:
        """Where ``mark`` was sent."""
        marks = self._marks.get(organization_id)
        return None if marks is None or mark is None else marks.get(mark)

    def _note(self, organization_id: str, mark: int) -> _Uses:
        """The uses of ``mark``, which becomes the latest of its organization."""
        marks = self._marks.setdefault(organization_id, {})
        uses = marks.pop(mark, None)
        if uses is None:
            uses = {}
            self._count += 1
            if len(marks) >= _MARKS:
                self._forget(marks, 1)
            elif self._count > _ALL_MARKS:
                largest = max(self._marks.values(), key=len)
                self._forget(largest, -(-len(largest) // 4))
        marks[mark] = uses
        return uses

    def _forget(self, marks: _Marks, count: int) -> None:
        """Forget the ``count`` marks of ``marks`` that were used least recently."""
        for mark in list(islice(marks, count)):
            del marks[mark]
        self._count -= count


def _known(prompt: Prompt, sent: Sequence[tuple[_Uses, int]], server: Server, now: float) -> int:
    """The bytes of ``prompt`` that ``server`` is taken to have, of what was ``sent``."""
    loses = None
    for uses, size in sent:
        use = uses.get(server)
        if use is None or use.at <= server.forgotten:
            continue
        if use.missed:
            if loses is None:
                loses = server.lost_lately(now) > _TOO_MUCH_LOST
            if loses:
                continue
        # Its last message is new, however long it is.
        return size or min(use.size, prompt.earlier)
    return 0


def _fits(busy: int, mean: float, bound: tuple[float, float]) -> bool:
    times, more = bound
    return busy <= times * mean + more
