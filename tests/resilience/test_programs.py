"""The programs of an attack end with the process that started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.resilience.measuring import measure
from tests.resilience.place import Place
from tests.resilience.target import HOST, Target, Tenant, save
from tests.support.live import ROOT
from tests.support.processes import children, command_of, runs

NAMES = ("half_sockets", "slow_bodies")
_SECONDS = 60.0
PROGRAM = f"""
import sys
from pathlib import Path
import django
django.setup()
from tests.resilience.test_programs import Victim, attack
from tests.support.servers.ends import end_on_sigterm
end_on_sigterm()
attack(Victim({_SECONDS}), Path(sys.argv[1]))
"""


class Failed(Exception):
    """An attack fails."""


def attackers(pid: int) -> set[int]:
    """The attackers that ``pid`` has started."""
    return {child for child in children(pid) if b"tests.resilience.attackers" in command_of(child)}


class Victim:
    """A victim in whose requests the attack ends: with ``Failed``, or by SIGTERM."""

    def __init__(self, waits: float = 0.0) -> None:
        self.seen: set[int] = set()
        self._waits = waits

    def between(self, began: float, ended: float) -> Any:
        self.seen = attackers(os.getpid())
        print(*self.seen, flush=True)
        threading.Event().wait(self._waits)
        raise Failed


def attack(victim: Victim, target: Path) -> None:
    place = Place(0, 0, [os.getpid()])
    measure.attack(NAMES, target, cast(Any, victim), measure.Figures([]), place, 0.0)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """The description of a server that accepts connections and says nothing."""
    with socket.create_server((HOST, 0), backlog=512) as server:
        port = server.getsockname()[1]
        path = tmp_path / "target.json"
        save(Target(port, port, Tenant("", "", "", "", "")), path)
        yield path


def test_the_attackers_are_gone_when_an_attack_has_failed(target: Path) -> None:
    victim = Victim()

    with pytest.raises(Failed):
        attack(victim, target)

    assert len(victim.seen) == len(NAMES)
    assert not any(map(runs, victim.seen))


@pytest.mark.long
def test_the_attackers_are_gone_when_the_program_was_terminated(target: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(target)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "svc_project.settings"},
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        program.send_signal(signal.SIGTERM)
        assert program.wait(_SECONDS) == 1

    assert len(pids) == len(NAMES)
    assert not any(map(runs, pids))
