"""Weighted rendezvous hashing: an order of servers for each key, in the shares that operators gave them.

Every worker and host finds the same order without talking to others, and a changed share moves no more
keys than it has to.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log
from typing import Final

_RANKS: Final = 2.0**64
_MASK: Final = 2**64 - 1


def number_of(name: str) -> int:
    """A number of 64 bits for ``name``, a key or a server's id."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def rank(key: int, server: int) -> int:
    """The rank of a server for a key, by their numbers; the highest of all servers is the key's home."""
    mixed = ((key * 0x9E3779B97F4A7C15) ^ server) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    return mixed ^ (mixed >> 27)


def score(share: float, ranked: int) -> float:
    """``-share / log(u)`` of a ``rank``, with ``u`` uniform in (0, 1).

    In the order of the scores each server is the first for its share of all keys, and the second for its
    share of what is left.
    """
    return -share / log((ranked + 0.5) / _RANKS)
