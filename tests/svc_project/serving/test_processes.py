"""The processes of ``serve``: none outlives its parent for long, and none hangs unnoticed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from svc_project.serving.lifeline import Heartbeats
from tests.support.gateways import Served
from tests.support.live import Command, Gateway, events, fetch, free_port
from tests.support.processes import children, runs, workers_of
from tests.support.served import ask, port_of, refuses, slow_stream
from tests.support.served import two_workers as gateway_of_two
from tests.support.until import until

pytestmark = pytest.mark.timeout(300)

SLOW = 60.0
"""Seconds that a loaded machine may need for a step of one or two seconds."""


@pytest.fixture(autouse=True)
def without_nohup() -> Iterator[None]:
    """Let gateways of these tests receive SIGHUP, even when the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def ended_at_last() -> Iterator[set[int]]:
    """Processes to be ended when the test failed to see them end."""
    pids: set[int] = set()
    yield pids
    for pid in pids:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def two_workers(command: Command) -> set[int]:
    return until(lambda: found if len(found := workers_of(command.process.pid)) == 2 else None)


def both_serve(url: str) -> bool:
    """Whether both workers have started and say how they are."""
    return fetch(f"{url.removesuffix('/v1')}/metrics").text.count("svc_ledger_database_up{") == 2


def all_processes(command: Command) -> set[int]:
    """Both workers, the engines' processes that each has started, and the page process."""
    workers = two_workers(command)
    engines = [until(partial(children, pid)) for pid in workers]
    return children(command.process.pid).union(*engines)


@pytest.mark.long
@pytest.mark.redis
def test_workers_end_when_their_parent_is_killed_and_close_its_address_at_once(
    gateway: Gateway, served: Served, tmp_path: Path, ended_at_last: set[int]
) -> None:
    with gateway_of_two(gateway, served) as (command, url):
        pids = all_processes(command)
        ended_at_last |= pids
        assert len(pids) >= 4
        ask(url, gateway, "say: both workers serve")
        with slow_stream(url, gateway, tokens=200) as pieces:
            text = next(pieces)
            command.process.kill()
            command.process.wait()
            # A server that starts now cannot listen before the orphans have closed the address, and
            # processes of engines live as long as what runs.
            until(lambda: refuses(url))
            text += next(pieces)
            assert "[DONE]" not in text, "the address is free only after the answer"
            port = port_of(url)
            following = Command(
                ["serve", "--port", str(port), "--speech-port", str(free_port())],
                served.environment,
                tmp_path / "following.log",
            )
            try:
                until(lambda: "inference on http" in following.log.read_text())
                text += "".join(pieces)
                until(lambda: not any(map(runs, pids)))
                following.wait_for(f"127.0.0.1:{port}")
                assert ask(url, gateway, "say: the next one").status_code == 200
            finally:
                following.stop()
    assert events(text)[-1] == "[DONE]", "what ran was finished"
    assert [row.outcome for row in gateway.rows() if row.streamed] == ["success"]


@pytest.mark.long
@pytest.mark.redis
def test_a_worker_that_hangs_ends_too_when_its_parent_is_killed(
    gateway: Gateway, served: Served, ended_at_last: set[int]
) -> None:
    """The kernel continues a stopped process of an orphaned group; a hung one ends itself."""
    with gateway_of_two(gateway, served, SVC_DRAIN_SECONDS="0.5") as (command, _):
        pids = all_processes(command)
        ended_at_last |= pids
        stopped = min(two_workers(command))
        os.kill(stopped, signal.SIGSTOP)
        command.process.kill()
        command.process.wait()
        os.kill(stopped, signal.SIGCONT)
        until(lambda: not any(map(runs, pids)))


def test_under_nohup_sighup_changes_nothing_and_an_engines_process_ends_with_a_killed_gateway(
    start_gateway: Callable[..., Gateway], ended_at_last: set[int]
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits that it is ignored
    try:
        started = start_gateway()
    finally:
        signal.signal(signal.SIGHUP, before)
    started.command.process.send_signal(signal.SIGHUP)
    assert started.chat("say: still there").status_code == 200

    pids = until(lambda: children(started.command.process.pid))
    ended_at_last |= pids
    started.command.kill()
    until(lambda: not any(map(runs, pids)))


def assert_shares_of_processors(workers: set[int], engines: set[int]) -> None:
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) > 1:
        first, second = map(processors_of_threads, workers)
        assert first.isdisjoint(second)
        assert first | second == everywhere
    for pid in engines:
        # A process is in its worker's share until it has begun.
        until(partial(uses, pid, everywhere))


def ends_when_stopped(pid: int) -> bool:
    """Stop a worker for longer than it may be silent. One that still starts is continued."""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: not runs(pid))
    except AssertionError:
        os.kill(pid, signal.SIGCONT)
        return False
    return True


@pytest.mark.long
@pytest.mark.redis
def test_each_worker_keeps_to_its_share_of_the_processors_and_one_that_hangs_is_replaced(
    gateway: Gateway, served: Served, tmp_path: Path, ended_at_last: set[int]
) -> None:
    """Else two event loops may wait for one processor while less urgent work has the others."""
    # Without a directory of its own the metrics count ``served`` among the workers, and one may not
    # have started.
    environment = {"SVC_WORKER_BLOCKED_SECONDS": "8", "SVC_DATA_DIR": str(tmp_path)}
    with gateway_of_two(gateway, served, **environment) as (command, url):
        pids = all_processes(command)  # engines run, so the loops turn
        ended_at_last |= pids
        workers = two_workers(command)
        until(lambda: both_serve(url), SLOW * 2)  # silence counts from the first heartbeat
        assert_shares_of_processors(workers, pids - workers)
        stopped = min(workers)
        until(lambda: ends_when_stopped(stopped), SLOW * 2)
        (new,) = until(lambda: workers_of(command.process.pid) - workers)
        ended_at_last.add(new)
        for _ in range(5):
            assert ask(url, gateway, "say: served").status_code == 200
        assert max(workers) in workers_of(command.process.pid), "the healthy one is left alone"
        assert command.stop(SLOW) == 0
        log = command.log.read_text()
    assert f"worker {stopped} hangs: its event loop has not turned for " in log
    assert f"worker {stopped} ended with -9 and is replaced" in log


def processors_of_threads(pid: int) -> set[int]:
    """Every processor that a thread of the process may use (sched_getaffinity(2))."""
    found: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            found |= os.sched_getaffinity(int(thread.name))
    return found


def uses(pid: int, processors: set[int]) -> bool:
    return os.sched_getaffinity(pid) == processors


@pytest.mark.long
@pytest.mark.redis
def test_workers_on_fewer_processors_share_them(gateway: Gateway, served: Served) -> None:
    before = os.sched_getaffinity(0)
    only = {min(before)}
    os.sched_setaffinity(0, only)  # a child inherits it
    try:
        with gateway_of_two(gateway, served) as (command, url):
            until(lambda: ask(url, gateway, "say: up").status_code == 200)
            assert [os.sched_getaffinity(pid) for pid in two_workers(command)] == [only] * 2
            assert "cannot keep to its share" not in command.log.read_text()
    finally:
        os.sched_setaffinity(0, before)


def test_silence_counts_from_the_first_heartbeat_and_not_while_the_parent_is_stopped() -> None:
    heartbeats = Heartbeats()
    assert heartbeats.seconds_silent(0.0, {1: False, 2: True}) == {2: 0.0}
    for second in range(1, 90):
        silent = heartbeats.seconds_silent(float(second), {1: False, 2: False, 3: True})
        assert silent == {2: float(second), 3: 0.0}
    # The whole group was stopped for ten minutes, as after Ctrl-Z, or with the machine.
    assert heartbeats.seconds_silent(690.0, {1: False, 2: False, 3: False}) == {2: 0.0, 3: 0.0}
    heartbeats.remove(2)
    assert heartbeats.seconds_silent(691.0, {2: False, 3: False}) == {3: 1.0}
