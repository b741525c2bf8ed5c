"""``python -m benchmarks.peers [--quick]``: svc, the bare relay, LiteLLM's proxy and Portkey's gateway.

They take turns in front of the same stub, with 32 connections and one worker each. svc checks keys,
validates, charges limits and writes a durable row for each request; the other two do none of this.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from benchmarks.__main__ import heading
from benchmarks.bench import Bench, running_bench
from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.peers import litellm, portkey
from benchmarks.processes import stop_on_sigterm
from benchmarks.tables import (
    CONCURRENCY,
    RELAY,
    STREAMS,
    Goal,
    Part,
    Results,
    Run,
    Target,
    cpu_per_frame,
    cpu_per_request,
    frames_per_second,
    goals_table,
    interleave,
    p50,
    p99,
    per_second,
    plan_for,
    table,
    times_at_least,
)

_SVC = "svc"
_WANTED = {litellm.NAME: 60.0, portkey.NAME: 7.0}


def _times(results: Results, name: str, base: str, figure: Callable[[Run], float]) -> str:
    if not all(results.of(each, per_second) for each in (name, base)):
        return "no answer"
    return f"{results.ratio(name, base, figure):.2f}x"


def _table(
    title: str,
    unit: str,
    targets: Sequence[Target],
    seen: Results,
    rate: Callable[[Run], float],
    cpu: Callable[[Run], float],
) -> str:
    return table(
        title,
        [
            *("target", f"{unit}s/s", "svc's rate, times its", f"CPU us/{unit}"),
            *("its CPU, times svc's", "p50 ms", "p99 ms", "MB", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{seen.of(target.name, rate):.0f}",
                _times(seen, _SVC, target.name, rate),
                f"{seen.of(target.name, cpu):.3g}",
                _times(seen, target.name, _SVC, cpu),
                f"{seen.of(target.name, p50):.2f}",
                f"{seen.of(target.name, p99):.2f}",
                f"{target.server.resident_megabytes():.0f}" if target.server else "-",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for target in targets
        ],
    )


def _whole(targets: Sequence[Target], rounds: int, seconds: float) -> Part:
    seen = interleave(
        targets, rounds, lambda target: plan_for(target, Pace.EACH, CONCURRENCY, seconds)
    )
    title = f"Not streamed (600-byte answers; {CONCURRENCY} connections)"
    goals: list[Goal] = []
    for name in [target.name for target in targets if target.name in _WANTED]:
        wanted = _WANTED[name]
        by_cpu = seen.ratio(name, _SVC, cpu_per_request)
        by_rate = seen.ratio(_SVC, name, per_second)
        goals += [
            times_at_least(f"{name}: its CPU of a request, times svc's", by_cpu, wanted),
            times_at_least(f"{name}: svc's rate, times its", by_rate, wanted),
        ]
    return Part(
        _table(title, "request", targets, seen, per_second, cpu_per_request),
        [*goals, seen.rows_goal("beside others")],
    )


def _streams(targets: Sequence[Target], rounds: int, seconds: float) -> Part:
    seen = interleave(
        targets, rounds, lambda target: plan_for(target, Pace.EACH, STREAMS, seconds, FAST_TOKENS)
    )
    title = f"Streamed ({FAST_TOKENS} frames, one write each; {STREAMS} connections)"
    text = _table(title, "frame", targets, seen, frames_per_second, cpu_per_frame)
    return Part(text, [seen.rows_goal("beside others, streamed")])


def _start(bench: Bench) -> tuple[list[Target], list[str]]:
    """Start what is installed; return the targets, and a sentence for each that is left out."""
    targets, left_out = [bench.relay(RELAY), bench.svc(_SVC)], []
    for peer in (litellm, portkey):
        if reason := peer.missing():
            left_out.append(f"**LEFT OUT: {peer.NAME}, because {reason}.**\n")
        else:
            targets.append(peer.start(bench))
    return targets, left_out


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    rounds, seconds = (2, 1.0) if parser.parse_args().quick else (5, 3.0)
    stop_on_sigterm()
    print(heading(), flush=True)
    with running_bench() as bench:
        targets, left_out = _start(bench)
        print("\n".join(left_out), flush=True)
        goals: list[Goal] = []
        for measure in (_whole, _streams):
            part = measure(targets, rounds, seconds)
            print(part.text, flush=True)
            goals += part.goals
    print(goals_table(goals))
    print("\n".join([*left_out, f"Load average at the end: {os.getloadavg()[0]:.1f}."]))


if __name__ == "__main__":
    main()
