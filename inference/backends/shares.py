"""Deals new conversations to the deployments of a model in the shares that an operator gave them.

A conversation's home decides by weighted rendezvous hashing: every worker and host finds the same order
without talking to others, and a changed weight moves no more conversations than it has to. Later turns
stay where the conversation is, as everywhere (``placement``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from core.backends import rendezvous
from inference.backends.placement import Candidate, Placement, Reason
from inference.backends.prompts import Prompt

_GOLDEN: Final = 0x9E3779B97F4A7C15
_turns: Final = count(1)


def order(
    placement: Placement, prompt: Prompt, candidates: Sequence[Candidate], shares: Sequence[float]
) -> tuple[list[int], Reason]:
    """Return the indexes of ``candidates``, best first, and why; ``shares`` are in the same order.

    The order is that of ``rendezvous.score`` by home and server.
    """
    # A short prompt has no home. Each takes the next turn.
    home = prompt.home if prompt.beginning else next(_turns) * _GOLDEN
    scores = [
        rendezvous.score(share, server.rank(home))
        for (server, _), share in zip(candidates, shares, strict=True)
    ]
    stays = placement.stays(prompt, candidates)
    indexes = sorted(range(len(candidates)), key=lambda at: (at != stays, -scores[at]))
    return indexes, Reason.SHARE if stays is None else Reason.WARM
