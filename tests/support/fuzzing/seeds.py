"""How many conversations a run of the fuzzers plays, and which."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

BOUNDS = {
    "SVC_HEAD_SECONDS": "3",
    "SVC_BODY_SECONDS": "5",
    "SVC_SPEECH_START_SECONDS": "1",
    "SVC_SPEECH_IDLE_SECONDS": "1",
    "SVC_REFUSED_REQUESTS_PER_MINUTE": "unlimited",
}
"""Settings with which the gateway ends what does not go on."""
SECONDS = 20.0
"""By then every connection must have been answered or ended, on a busy machine too."""

_LONG_RUN = float(os.environ.get("SVC_TEST_FUZZ_SECONDS", "0"))


def batches(size: int) -> Iterator[range]:
    """Yield the seeds of the batches of this run: one, always the same; or new ones for a long run.

    ``SVC_TEST_FUZZ_SEED`` gives the first seed, and repeats what a finding says.
    """
    first = os.environ.get("SVC_TEST_FUZZ_SEED")
    if first is not None:
        yield range(int(first), int(first) + 1)
        return
    yield range(size)
    if _LONG_RUN:
        begin = random.randrange(10**9)
        until = time.monotonic() + _LONG_RUN
        played = size
        while time.monotonic() < until:
            yield range(begin, begin + size)
            begin += size
            played += size
        print(f"{played} conversations were played.")
