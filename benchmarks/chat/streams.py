"""Streams at full speed: frames a second and the CPU time of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.tables import (
    RELAY,
    STREAMS,
    Part,
    Target,
    at_least,
    cpu,
    cpu_per_frame,
    frames_per_second,
    interleave,
    of_relay,
    p50,
    per_second,
    plan_for,
    table,
)

_WANTED: Final = {Pace.EACH: 0.7, Pace.BURST: 0.6}
_WRITES: Final = {Pace.EACH: "one write each", Pace.BURST: "all in one write"}


def streams(
    targets: Sequence[Target], gateway: Target, rounds: int, seconds: float, pace: Pace
) -> Part:
    """Measure all ``targets`` with streams of one ``pace``; the goals are of ``gateway``."""
    seen = interleave(
        targets, rounds, lambda target: plan_for(target, pace, STREAMS, seconds, FAST_TOKENS)
    )
    writes = _WRITES[pace]
    text = table(
        f"Streamed at once ({FAST_TOKENS} frames of 250 bytes, {writes}; {STREAMS} connections)",
        [
            *("target", "frames/s", "of the relay", "CPU us/frame", "of the relay by CPU"),
            *("streams/s", "p50 ms of a stream", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{seen.of(target.name, frames_per_second):.0f}",
                of_relay(seen, target.name, frames_per_second),
                *cpu(seen, target, cpu_per_frame),
                f"{seen.of(target.name, per_second):.0f}",
                f"{seen.of(target.name, p50):.2f}",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for target in targets
        ],
    )
    return Part(
        text,
        [
            at_least(
                f"frames, {writes}, of the relay by CPU",
                seen.ratio(RELAY, gateway.name, cpu_per_frame),
                _WANTED[pace],
            ),
            seen.rows_goal(f"frames, {writes}"),
        ],
    )
