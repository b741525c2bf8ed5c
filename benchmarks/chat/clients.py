"""The bare relay with each installed HTTP client towards the model server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.load import Plan
from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.tables import (
    CONCURRENCY,
    STREAMS,
    Part,
    Target,
    cpu_per_frame,
    cpu_per_request,
    frames_per_second,
    interleave,
    per_second,
    plan_for,
    table,
)


def _plan(concurrency: int, seconds: float, tokens: int, target: Target) -> Plan:
    return plan_for(target, Pace.EACH, concurrency, seconds, tokens)


def clients(targets: Mapping[str, Target], rounds: int, seconds: float) -> Part:
    """Measure a relay for each client, by its name; ``svc`` is the gateway's own."""
    relays = list(targets.values())
    requests, frames = (
        interleave(relays, rounds, partial(_plan, many, seconds, tokens))
        for tokens, many in ((0, CONCURRENCY), (FAST_TOKENS, STREAMS))
    )
    base = relays[0].name
    return Part(
        table(
            "HTTP clients towards the model server (bare relay with each)",
            [
                *("client", "req/s", f"of {base}", "CPU us/request", "frames/s", f"of {base}"),
                *("CPU us/frame", "failures"),
            ],
            [
                [
                    name,
                    f"{requests.of(target.name, per_second):.0f}",
                    f"{requests.ratio(target.name, base, per_second):.0%}",
                    f"{requests.of(target.name, cpu_per_request):.0f}",
                    f"{frames.of(target.name, frames_per_second):.0f}",
                    f"{frames.ratio(target.name, base, frames_per_second):.0%}",
                    f"{frames.of(target.name, cpu_per_frame):.2f}",
                    str(requests.failures(target.name) + frames.failures(target.name)),
                ]
                for name, target in targets.items()
            ],
        )
    )
