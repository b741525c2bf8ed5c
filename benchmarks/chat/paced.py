"""What a client waits for at a part of the top rate: requests arrive at random times (an open loop)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from benchmarks.load import Plan
from benchmarks.payloads import Pace
from benchmarks.tables import (
    CONCURRENCY,
    Part,
    Target,
    interleave,
    p50,
    p99,
    per_second,
    plan_for,
    table,
)

_SHARES: Final = (0.1, 0.5, 0.8)
_CONNECTIONS: Final = 128


def paced(targets: Sequence[Target], rounds: int, seconds: float) -> Part:
    """Measure each target's top rate, then its latency at a tenth, a half and four fifths of it.

    A latency begins when its request was due, so a request that waits for a connection counts.
    """
    top = interleave(
        targets, rounds, lambda target: plan_for(target, Pace.EACH, CONCURRENCY, seconds / 2)
    )
    asked = {
        f"{target.name}, {share:.0%}": share * top.of(target.name, per_second)
        for target in targets
        for share in _SHARES
    }

    def plan(target: Target) -> Plan:
        base = plan_for(target, Pace.EACH, _CONNECTIONS, seconds)
        return msgspec.structs.replace(base, rate=asked[target.name])

    each = [
        replace(target, name=f"{target.name}, {share:.0%}")
        for target in targets
        for share in _SHARES
    ]
    seen = interleave(each, rounds, plan)
    text = table(
        "Latency below the top rate (600-byte answers, requests at random times)",
        [
            *("target, of its top rate", "req/s asked", "req/s answered"),
            *("p50 ms", "p99 ms", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{asked[target.name]:.0f}",
                f"{seen.of(target.name, per_second):.0f}",
                f"{seen.of(target.name, p50):.2f}",
                f"{seen.of(target.name, p99):.2f}",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for target in each
        ],
    )
    return Part(text, [seen.rows_goal("below the top rate")])
