"""Nearly valid inputs: valid ones, damaged in a few places."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from hypothesis import strategies as st

_EDITS = st.tuples(
    st.sampled_from(["cut", "put", "replace", "repeat", "swap"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)


@st.composite
def damaged(draw: st.DrawFn, good: Sequence[bytes], pieces: Sequence[bytes] = ()) -> bytes:
    """Draw one of ``good`` after up to six edits; ``pieces`` are tokens of the grammar."""
    content = draw(st.sampled_from(list(good)))
    put = st.binary(max_size=8) | st.sampled_from(list(pieces) or [b"\x00"])
    for kind, place, length, number in draw(st.lists(_EDITS, max_size=6)):
        at = int(place * (len(content) + 1))
        there = content[at : at + length]
        if kind == "cut":
            content = content[:at] + content[at + length :]
        elif kind == "put":
            content = content[:at] + draw(put) + content[at:]
        elif kind == "replace":
            new = number.to_bytes(4, "little")[: max(1, length % 5)]
            content = content[:at] + new + content[at + len(new) :]
        elif kind == "repeat":
            content = content[: at + length] + there * (number % 5) + content[at + length :]
        else:
            other = number % (len(content) + 1)
            content = content[:at] + content[other : other + length] + content[at:]
    return content


@st.composite
def split(draw: st.DrawFn, content: bytes) -> list[bytes]:
    """Split ``content`` into reads of any sizes."""
    cuts = draw(st.lists(st.integers(0, len(content)), max_size=12))
    ends = [0, *sorted(cuts), len(content)]
    return [content[start:end] for start, end in pairwise(ends)]


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Assert that the block takes at most ``seconds`` of this thread's CPU time."""
    # A garbage collection would also walk the objects of all earlier tests.
    gc.disable()
    began = time.thread_time()
    try:
        yield
        spent = time.thread_time() - began
    finally:
        gc.enable()
    assert spent <= seconds, f"{spent:.3f} s"
