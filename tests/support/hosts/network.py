"""Several hosts on one machine: network namespaces on one bridge (ip-netns(8)), each with its address."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import children, runs
from tests.support.until import until

_NETWORK: Final = "10.213.7."
_NOWHERE: Final = "02:00:00:00:00:99"
"""A hardware address that nobody has: what is sent there is lost without a word."""


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


@dataclass
class Running:
    """A program of a host; its children end with it."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL to the process and all below it, as if the host had lost its power."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGSTOP)
        below = _all_below(self.process.pid)
        self.process.kill()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        until(lambda: not any(map(runs, below)))

    def stop(self, seconds: float = 60.0) -> int:
        """Send SIGTERM, and return the exit status."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        finally:
            if self.is_running:
                self.kill()


def _all_below(pid: int) -> set[int]:
    found: set[int] = set()
    for child in children(pid):
        found |= {child} | _all_below(child)
    return found


@dataclass
class Host:
    """A network namespace with one address; what runs in it reaches the other hosts, and itself."""

    name: str
    address: str
    _programs: list[Running] = field(default_factory=list)

    def run(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Running:
        """Start a program in this host, as ``user`` where one is given."""
        as_user = (
            ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        )
        with log.open("ab") as written:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *as_user, *arguments],
                stdout=written,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=directory,
            )
        self._programs.append(Running(process, log))
        return self._programs[-1]

    def cut_from(self, other: Host) -> None:
        """Lose every packet to ``other`` from now on, in both directions, without an error."""
        for here, there in ((self, other), (other, self)):
            _ip(
                "-n",
                here.name,
                "neigh",
                "replace",
                there.address,
                "lladdr",
                _NOWHERE,
                "dev",
                "eth0",
            )

    def join(self, other: Host) -> None:
        """Undo ``cut_from``."""
        for here, there in ((self, other), (other, self)):
            _ip("-n", here.name, "neigh", "del", there.address, "dev", "eth0")

    def end(self) -> None:
        for program in reversed(self._programs):
            if program.is_running:
                program.kill()


class Network:
    """Hosts on one bridge, which this machine's own programs reach too."""

    address: Final = f"{_NETWORK}1"
    """This machine's own."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._hosts = 0

    def host(self, name: str) -> Host:
        """Add a host; it ends with the network."""
        self._hosts += 1
        host = Host(f"svc-{name}", f"{_NETWORK}{10 + self._hosts}")
        _ip("netns", "add", host.name)
        self._stack.callback(_ip, "netns", "del", host.name)
        outer = f"svc{self._hosts}"
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        # With its namespace it would go too, but at some later time.
        self._stack.callback(_ip, "link", "del", outer)
        _ip("link", "set", outer, "master", "svc-hosts", "up")
        _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip("-n", host.name, "link", "set", "lo", "up")
        _ip("-n", host.name, "link", "set", "eth0", "up")
        self._stack.callback(host.end)
        return host


@contextmanager
def network() -> Iterator[Network]:
    """Make a bridge for hosts. Skips the test where this user may not."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("hosts in network namespaces need root and the package iproute2")
    with ExitStack() as stack:
        _ip("link", "add", "svc-hosts", "type", "bridge")
        stack.callback(_ip, "link", "del", "svc-hosts")
        _ip("address", "add", f"{Network.address}/24", "dev", "svc-hosts")
        _ip("link", "set", "svc-hosts", "up")
        yield Network(stack)


def answers(address: str, port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((address, port)) == 0
