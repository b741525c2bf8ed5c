"""Workers share connections evenly, also when many arrive at once."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from svc_project.serving import acceptor
from svc_project.serving.acceptor import Acceptor, Counts
from tests.support.gateways import Served
from tests.support.live import Gateway
from tests.support.processes import workers_of
from tests.support.served import port_of, two_workers
from tests.support.until import until

CONNECTIONS = 60


@pytest.mark.parametrize(
    ("own", "others", "ahead"),
    [
        (0, [0, 0], False),
        (1, [0, 0], False),
        (2, [0, 5], True),
        (6, [5, 9], False),
        (7, [5, 9], True),
    ],
)
def test_a_worker_leaves_a_connection_to_another_that_has_two_less(
    tmp_path: Path, own: int, others: list[int], ahead: bool
) -> None:
    with (tmp_path / "counts").open("w+b") as file:
        file.truncate(4096)
        workers = [Counts(file.fileno(), each, 3) for each in range(3)]
        for worker, count in zip(workers[1:], others, strict=True):
            worker.is_ahead(count)
        assert workers[0].is_ahead(own) is ahead


class Full(socket.socket):
    """A listener of a process that has no descriptor for the first connections that it wants to take."""

    tried, failures = 0, 3

    def accept(self) -> tuple[socket.socket, object]:
        self.tried += 1
        if self.tried <= self.failures:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_a_worker_without_a_descriptor_says_so_and_does_not_spin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "_FULL_SECONDS", 0.05)
    with (tmp_path / "counts").open("w+b") as file, Full() as listener:
        file.truncate(4096)
        listener.bind(("127.0.0.1", 0))
        taken = asyncio.Event()

        def protocol() -> asyncio.Protocol:
            taken.set()
            return asyncio.Protocol()

        accepting = Acceptor(listener, 8, protocol, [], Counts(file.fileno(), 0, 2))
        with socket.create_connection(listener.getsockname()):
            began = asyncio.get_running_loop().time()
            await asyncio.wait_for(taken.wait(), 60)
            assert asyncio.get_running_loop().time() - began >= 3 * 0.05 * 0.9
        accepting.close()
    assert [each.message for each in caplog.records if each.name == acceptor.__name__] == [
        "this worker takes no connection: Too many open files (LimitNOFILE)"
    ]


def connections_of(pid: int, port: int) -> int:
    """The connections to ``port`` that the process holds (proc(5))."""
    held = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        line[1].endswith(f":{port:04X}") and line[3] == "01" and f"socket:[{line[9]}]" in held
        for line in lines
    )


@pytest.mark.long
@pytest.mark.redis
def test_a_burst_of_connections_is_shared_evenly(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    environment = {"SVC_DATA_DIR": str(tmp_path), "SVC_HEAD_SECONDS": "60"}
    with two_workers(gateway, served, **environment) as (command, url), ExitStack() as opened:
        workers = until(lambda: w if len(w := workers_of(command.process.pid)) == 2 else None)
        port = port_of(url)

        def both_accept() -> bool:
            started.enter_context(socket.create_connection(("127.0.0.1", port)))
            return all(connections_of(pid, port) for pid in workers)

        with ExitStack() as started:
            until(both_accept, 120)
        until(lambda: not any(connections_of(pid, port) for pid in workers))
        for _ in range(CONNECTIONS):
            opened.enter_context(socket.create_connection(("127.0.0.1", port)))

        def all_accepted() -> list[int] | None:
            counts = [connections_of(pid, port) for pid in workers]
            return counts if sum(counts) == CONNECTIONS else None

        found = until(all_accepted)
        assert min(found) * 4 >= max(found), found
