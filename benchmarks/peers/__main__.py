"""``python -m benchmarks.peers [--quick] [--only NAME]``: svc beside routers, proxies and gateways of others.

All take turns in front of the same stub. svc checks keys, validates, charges limits and writes a durable row
for each request; the others do none of this. svc and the gateways and proxies have one worker; the routers
have the threads that they choose themselves, so CPU times compare and rates at many connections do not.
With ``SVC_TEST_DATABASE_URL`` set, svc is measured on PostgreSQL too, whose own CPU time is not counted.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median, quantiles
from typing import Final

from benchmarks.__main__ import heading
from benchmarks.bench import Bench, running_bench
from benchmarks.chat.slow import slow
from benchmarks.gateway import postgresql
from benchmarks.load import Plan
from benchmarks.payloads import FAST_TOKENS, Pace
from benchmarks.peers import litellm, portkey
from benchmarks.peers.peer import Peer
from benchmarks.peers.proxies import PROXIES
from benchmarks.peers.routers import ROUTERS
from benchmarks.processes import stop_on_sigterm
from benchmarks.tables import (
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

PEERS: Final = (*ROUTERS, *PROXIES, portkey.PEER, litellm.PEER)
NAMES: Final = ("whole", "streams", "slow")
_SVC: Final = "svc"
_STUB: Final = "stub, direct"
_CONNECTIONS: Final = (1, 4, 16, 64)


def _least(runs: Sequence[Run], figure: Callable[[Run], float]) -> str:
    """The least and the lower quartile, which other work on the machine moves less than the median."""
    figures = [figure(run) for run in runs]
    low = quantiles(figures, n=4, method="inclusive")[0] if len(figures) > 1 else figures[0]
    return f"{min(figures):.3g}, {low:.3g}"


def _cpu_cells(
    seen: Results, target: Target, figure: Callable[[Run], float], base: str
) -> list[str]:
    """CPU time: median, then least and lower quartile, then how many times that of ``base``."""
    if target.server is None:
        return ["-", "-", "-"]
    return [
        f"{seen.of(target.name, figure):.3g}",
        _least(seen.runs[target.name], figure),
        f"{seen.ratio(target.name, base, figure):.2f}x",
    ]


def _cpu_goals(
    seen: Results,
    wanted: Sequence[tuple[str, float | None]],
    what: str,
    figure: Callable[[Run], float],
) -> list[Goal]:
    return [
        times_at_least(f"{name}: its CPU of a {what}, times svc's", ratio, least)
        for name, least in wanted
        if least is not None and name in seen.runs
        for ratio in [seen.ratio(name, _SVC, figure)]
    ]


def _whole_plan(connections: int, seconds: float, target: Target) -> Plan:
    return plan_for(target, Pace.EACH, connections, seconds)


def _added(by_connections: Sequence[Results], name: str, figure: Callable[[Run], float]) -> str:
    """What a target adds to the stub's time, for each number of connections."""
    return ", ".join(f"{median(seen.added(name, _STUB, figure)):.2f}" for seen in by_connections)


def _whole(targets: Sequence[Target], rounds: int, seconds: float) -> Part:
    by_connections = [
        interleave(targets, rounds, partial(_whole_plan, connections, seconds))
        for connections in _CONNECTIONS
    ]
    most = by_connections[-1]
    everything = Results(
        {
            each.name: [run for seen in by_connections for run in seen.runs[each.name]]
            for each in targets
        }
    )
    at = ", ".join(map(str, _CONNECTIONS))
    text = table(
        f"Whole answers (600 bytes; {at} connections)",
        [
            *("target", f"added p50 ms at {at}", f"added p99 ms at {at}"),
            *(f"requests/s at {_CONNECTIONS[-1]}", f"CPU us/request at {_CONNECTIONS[-1]}"),
            *("least, lower quartile", "times svc's", "MB", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                _added(by_connections, target.name, p50),
                _added(by_connections, target.name, p99),
                f"{most.of(target.name, per_second):.0f}",
                *_cpu_cells(most, target, cpu_per_request, _SVC),
                f"{target.server.resident_megabytes():.0f}" if target.server else "-",
                everything.rows(target.name),
                str(everything.failures(target.name)),
            ]
            for target in targets
        ],
    )
    goals = _cpu_goals(most, [(peer.name, peer.cpu) for peer in PEERS], "request", cpu_per_request)
    return Part(text, [*goals, everything.rows_goal("beside others")])


def _streams(targets: Sequence[Target], rounds: int, seconds: float) -> Part:
    seen = interleave(
        targets, rounds, lambda target: plan_for(target, Pace.EACH, STREAMS, seconds, FAST_TOKENS)
    )
    text = table(
        f"Streamed ({FAST_TOKENS} frames, one write each; {STREAMS} connections)",
        [
            *("target", "frames/s", "CPU us/frame", "least, lower quartile", "times svc's"),
            *("p50 ms of a stream", "p99 ms", "MB", "rows / requests", "failures"),
        ],
        [
            [
                target.name,
                f"{seen.of(target.name, frames_per_second):.0f}",
                *_cpu_cells(seen, target, cpu_per_frame, _SVC),
                f"{seen.of(target.name, p50):.2f}",
                f"{seen.of(target.name, p99):.2f}",
                f"{target.server.resident_megabytes():.0f}" if target.server else "-",
                seen.rows(target.name),
                str(seen.failures(target.name)),
            ]
            for target in targets
        ],
    )
    goals = _cpu_goals(seen, [(peer.name, peer.frame) for peer in PEERS], "frame", cpu_per_frame)
    return Part(text, [*goals, seen.rows_goal("beside others, streamed")])


def _parts(
    bench: Bench, peers: Sequence[Peer], names: set[str], rounds: int, seconds: float
) -> Iterator[Part]:
    relay, svc = bench.relay(RELAY), bench.svc(_SVC)
    own = [relay, svc]
    if address := os.environ.get("SVC_TEST_DATABASE_URL"):
        database = bench.stack.enter_context(postgresql(address))
        own.append(bench.svc("svc on PostgreSQL", database))
    started = [(peer, peer.start(bench)) for peer in peers]
    targets = [*own, *(target for _, target in started)]
    if "whole" in names:
        yield _whole([Target(_STUB, bench.stub_port), *targets], rounds, seconds)
    if "streams" in names:
        yield _streams(targets, rounds, seconds)
    if "slow" in names:
        yield slow([*own, *(target for peer, target in started if peer.slow)], svc)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", choices=NAMES, action="append", help="one table; repeatable")
    parser.add_argument(
        "--without", action="append", default=[], help="leave a peer out whose name begins so"
    )
    arguments = parser.parse_args()
    rounds, seconds = (2, 0.5) if arguments.quick else (6, 1.0)
    peers = [each for each in PEERS if not each.name.startswith(tuple(arguments.without))]
    reasons = {each.name: each.missing() for each in peers}
    left_out = [
        f"**LEFT OUT: {name}, because {reason}.**" for name, reason in reasons.items() if reason
    ]
    peers = [each for each in peers if reasons[each.name] is None]
    stop_on_sigterm()
    print("\n".join([heading(), *left_out]), flush=True)
    goals: list[Goal] = []
    with running_bench() as bench:
        for part in _parts(bench, peers, set(arguments.only or NAMES), rounds, seconds):
            print(part.text, flush=True)
            goals += part.goals
    print(goals_table(goals))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
