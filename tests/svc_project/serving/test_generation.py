"""When the processes of a generation start and take connections, with stand-ins for the processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_project.serving import generation
from svc_project.serving.child import Child
from svc_project.serving.generation import Generation
from tests.support.until import until

# It sends heartbeats, which a file named by its role has, once that is there, and says in another
# file what its parent has told it.
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
line.setblocking(False)
told = b""
while True:
    line.send((here / role).read_bytes())
    try:
        read = line.recv(9)
    except BlockingIOError:
        read = None
    if read == b"":
        break
    told += read or b""
    (here / (role + ".told")).write_bytes(told)
    time.sleep(0.02)
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

    def beat(self, role: str, beat: bytes) -> None:
        written = self._directory / f"{role}.new"
        written.write_bytes(beat)
        written.rename(self._directory / role)

    def told(self, role: str) -> bytes:
        """All bytes that the parent has sent to the process of ``role``."""
        self.look()
        said = self._directory / f"{role}.told"
        return said.read_bytes() if said.exists() else b""

    def waiting(self) -> set[str]:
        """The workers that take no connections after this look."""
        self.look()
        return {str(each.share) for each in self.generation.children if each.waits}

    def kill(self, role: str) -> Child:
        """Kill the process of ``role``."""
        (found,) = (
            each for each in self.generation.children if each.is_worker and str(each.share) == role
        )
        found.process.send(signal.SIGKILL)
        until(lambda: not found.process.runs())
        (self._directory / f"{role}.told").unlink()
        return found

    def begin(self, role: str) -> None:
        """Let a process send its heartbeat, and wait until it has come."""
        self.beat(role, b".")
        begun = sum((self._directory / each).exists() for each in ROLES)
        until(lambda: (self.look(), self.generation._begun().count(True))[1] == begun)


@pytest.fixture
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Started]:
    found = Started(request.param, tmp_path)
    yield found
    for role in ROLES:
        found.beat(role, b".")
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


@pytest.mark.parametrize("started", [False], indirect=True)
def test_one_that_is_replaced_takes_connections_when_it_is_ready_or_where_no_other_does(
    started: Started,
) -> None:
    for role in ROLES:
        started.begin(role)
    until(lambda: started.told("1") == started.told("2") == b"wa")
    # They get no keys and no catalog, since the database is away.
    for role in ("0", "1"):
        started.beat(role, b",")
        started.generation.replace(started.kill(role))
    until(lambda: started.told("0") == started.told("1") == b"w")
    until(lambda: (started.look(), all(started.generation._begun()))[1])
    assert started.waiting() == {"0", "1"}

    started.beat("1", b".")
    until(lambda: started.told("1") == b"wa")
    assert started.waiting() == {"0"}

    started.kill("1")
    started.kill("2")
    until(lambda: started.told("0") == b"wa")
