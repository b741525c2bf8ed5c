"""Answers that are not streamed: the rate and the CPU time of a request, and what one alone waits for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from benchmarks.load import Plan
from benchmarks.payloads import Pace
from benchmarks.tables import (
    CONCURRENCY,
    RELAY,
    Goal,
    Part,
    Results,
    Target,
    at_least,
    cpu,
    cpu_per_request,
    interleave,
    of_relay,
    p50,
    p99,
    per_second,
    plan_for,
    table,
)

_COLUMNS = (
    *("target", "req/s", "of the relay", "CPU us/request", "of the relay by CPU"),
    *("p50 ms", "p99 ms"),
    *("p50 ms alone", "added alone", "rows / requests", "failures"),
)


def _plan(concurrency: int, seconds: float, target: Target) -> Plan:
    return plan_for(target, Pace.EACH, concurrency, seconds)


def whole(targets: Sequence[Target], gateway: Target, rounds: int, seconds: float) -> Part:
    """Measure all ``targets``, the first of which is the stub; the goals are of ``gateway``."""
    many = interleave(targets, rounds, partial(_plan, CONCURRENCY, seconds))
    one = interleave(targets, rounds, partial(_plan, 1, seconds / 2))
    both = Results({name: many.runs[name] + one.runs[name] for name in many.runs})
    stub = targets[0].name
    text = table(
        f"Not streamed (600-byte answers; {CONCURRENCY} connections, then 1)",
        _COLUMNS,
        [
            [
                target.name,
                f"{many.of(target.name, per_second):.0f}",
                of_relay(many, target.name, per_second),
                *cpu(many, target, cpu_per_request),
                f"{many.of(target.name, p50):.2f}",
                f"{many.of(target.name, p99):.2f}",
                f"{one.of(target.name, p50):.3f}",
                f"{median(one.added(target.name, stub, p50)):.3f}",
                both.rows(target.name),
                str(both.failures(target.name)),
            ]
            for target in targets
        ],
    )
    name = gateway.name
    return Part(
        text,
        [
            at_least(
                "not streamed, of the relay by CPU",
                many.ratio(RELAY, name, cpu_per_request),
                0.65,
            ),
            at_least(
                "not streamed, of the relay by rate", many.ratio(name, RELAY, per_second), 0.65
            ),
            _added(one, name, stub),
            both.rows_goal("not streamed"),
        ],
    )


def _added(one: Results, name: str, stub: str) -> Goal:
    """What the gateway adds at the median to one connection, in times what the relay adds."""
    pairs = zip(one.added(name, stub, p50), one.added(RELAY, stub, p50), strict=True)
    found = median(own / max(relay, 1e-9) for own, relay in pairs)
    return Goal(
        "one connection, added at the median, of the relay's own",
        f"{found:.1f}x",
        "<= 2x",
        found <= 2,
    )
