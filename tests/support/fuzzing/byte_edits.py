"""Edits of bytes from a seeded random source, for runs too long and too parallel for Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random


def edited(random: Random, content: bytes, pieces: Sequence[bytes]) -> bytes:
    """Return ``content`` after up to four edits; ``pieces`` are tokens of the grammar."""
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(content) + 1)
        length = random.choice((1, 1, 2, 8, 40))
        there = content[at : at + length]
        edits = (
            content[:at] + content[at + length :],
            content[:at] + random.choice(pieces) + content[at:],
            content[:at] + random.choice(pieces) + content[at + length :],
            content[:at] + random.randbytes(length) + content[at + length :],
            content[:at] + there * random.choice((2, 3)) + content[at + length :],
            content[:at],
        )
        content = random.choices(edits, (3, 4, 3, 2, 2, 1))[0]
    return content


def cut(random: Random, content: bytes) -> list[bytes]:
    """Cut ``content`` into writes: seldom one for each byte, else at up to six places."""
    if random.random() < 0.03 and len(content) < 2000:
        return [content[at : at + 1] for at in range(len(content))]
    ends = [random.randrange(len(content) + 1) for _ in range(random.choice((0, 1, 1, 2, 6)))]
    if random.random() < 0.5:
        # At the end of a head, where what follows belongs to another reader.
        ends += [content.find(b"\r\n\r\n", random.randrange(len(content) + 1)) + 4]
    return [content[begin:end] for begin, end in pairwise([0, *sorted(ends), len(content)])]
