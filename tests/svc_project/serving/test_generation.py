"""In which order the processes of a generation start, with stand-ins for the processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_project.serving import generation
from svc_project.serving.generation import Generation
from tests.support.until import until

# It sends a heartbeat once there is a file that is named by its role.
STAND_IN = """
import json, pathlib, socket, sys, time
given = dict(zip(sys.argv, sys.argv[1:]))
line = socket.socket(fileno=int(given["--lifeline"]))
role = given.get("--share", "pages")
if role == "0":
    plan = {"workers": 3, "silence_seconds": 0.0, "state_file": ""}
    line.sendall(json.dumps(plan).encode() + b"\\n")
here = pathlib.Path(__file__).parent
while not (here / role).exists():
    time.sleep(0.02)
line.send(b".")
while line.recv(1): pass
"""
ROLES = ("0", "pages", "1", "2")


class Started:
    """A generation of stand-ins."""

    def __init__(self, waits: bool, directory: Path) -> None:
        self._directory = directory
        program = directory / "stand_in.py"
        program.write_text(STAND_IN)
        self.generation = Generation(1, [], [sys.executable, str(program)], waits=waits)
        self.generation.start_first(0)

    def look(self) -> int:
        """Look as the parent does; return how many processes have been started."""
        self.generation.look()
        self.generation.go_on_starting(range(1, 9))
        return len(self.generation.children)

    def begin(self, role: str) -> None:
        """Let a process send its heartbeat, and wait until it has come."""
        (self._directory / role).touch()
        begun = sum((self._directory / each).exists() for each in ROLES)
        until(lambda: (self.look(), self.generation._begun().count(True))[1] == begun)


@pytest.fixture
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Started]:
    found = Started(request.param, tmp_path)
    yield found
    for role in ROLES:
        (tmp_path / role).touch()
    for child in list(found.generation.children):
        child.line.close()
    until(found.generation.has_ended)


@pytest.mark.parametrize("started", [False], indirect=True)
def test_where_nobody_serves_all_others_start_once_the_first_worker_does(started: Started) -> None:
    assert started.look() == 1
    started.begin("0")
    assert started.look() == 4


@pytest.mark.parametrize("started", [True], indirect=True)
@pytest.mark.parametrize(("processors", "counts"), [(1, (2, 3, 4)), (3, (2, 3, 4)), (4, (3, 4, 4))])
def test_beside_another_generation_half_of_the_processors_start_processes(
    started: Started, processors: int, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "_PROCESSORS", processors)
    found = []
    for role in ROLES[:3]:
        started.begin(role)
        found.append(started.look())
        assert not started.generation.is_ready

    assert tuple(found) == counts
    started.begin("2")
    assert started.generation.is_ready
