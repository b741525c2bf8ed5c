"""``reload`` and SIGHUP: the next release takes over on the same sockets, and nobody notices."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests.support.gateways import Served
from tests.support.live import (
    NO_TLS,
    ROOT,
    Command,
    Gateway,
    Ran,
    events,
    fetch,
    free_port,
    manage,
)
from tests.support.processes import children, page_process_of, runs, workers_of
from tests.support.served import another_gateway, ask, slow_stream
from tests.support.speech.accounts import speech_account
from tests.support.until import until
from tests.svc_project.serving.test_processes import without_nohup
from usage.models import UsageRow

__all__ = ["without_nohup"]
pytestmark = pytest.mark.timeout(300)

RELEASE = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
os.chdir({str(ROOT)!r})
import manage
manage.main()
"""
BROKEN = RELEASE.replace(
    "import manage", "if 'serve_process' in sys.argv: sys.exit(7)\nimport manage"
)
WITHOUT_PAGES = RELEASE.replace(
    "import manage", "if '--pages' in sys.argv: sys.exit(7)\nimport manage"
)
# As if the migration of the new release had been forgotten; it could answer nothing.
BEHIND = RELEASE.replace(
    "import manage",
    """
if 'serve_process' in sys.argv:
    from core.database import schema
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    HttpToolsProtocol.connection_made = lambda protocol, transport: transport.abort()
    schema.compare = lambda: schema.Comparison(['usage.0999_later'], [])
import manage""",
)
PROGRAMS = {"good": RELEASE, "bad": BROKEN, "behind": BEHIND, "without_pages": WITHOUT_PAGES}


LISTENING = """
import fcntl, os, sys
apart = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:]]
for number, each in enumerate(apart, start=3):
    os.dup2(each, number)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "manage.py", "serve"])
"""
"""Passes its sockets on as a service manager does."""


def reload(served: Served, directory: Path) -> Ran:
    return manage("reload", **{**served.environment, "SVC_DATA_DIR": str(directory)})


def processes_of(command: Command, workers: int) -> set[int]:
    """The workers, and the page process of several, once all run."""
    pid = command.process.pid
    until(lambda: len(workers_of(pid)) == workers)
    if workers > 1:
        until(lambda: page_process_of(pid))
    return children(pid)


class Asking:
    """Sends chats one after the other on new connections, and keeps what came of each."""

    def __init__(self, url: str, gateway: Gateway) -> None:
        self._url, self._gateway = url, gateway
        self.statuses: list[int] = []
        self.longest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                status = ask(self._url, self._gateway, "say: served").status_code
            except httpx2.TransportError:
                status = 0
            self.statuses.append(status)
            self.longest = max(self.longest, time.monotonic() - began)


@pytest.mark.parametrize(
    "workers",
    [1, pytest.param(2, marks=[pytest.mark.redis, pytest.mark.long])],
    ids="workers={}".format,
)
def test_a_reload_cuts_nothing_and_refuses_nothing(
    gateway: Gateway, served: Served, tmp_path: Path, workers: int
) -> None:
    environment = {"SVC_DATA_DIR": str(tmp_path), "SVC_WORKERS": str(workers)}
    if workers > 1:
        environment["REDIS_URL"] = os.environ["SVC_TEST_REDIS_URL"]
    with ExitStack() as stack:
        command, url = stack.enter_context(another_gateway(gateway, served, **environment))
        parent, first = command.process.pid, processes_of(command, workers)
        kept = stack.enter_context(
            httpx2.Client(
                base_url=url,
                headers=gateway.headers,
                verify=NO_TLS,
                limits=httpx2.Limits(keepalive_expiry=60),
                timeout=60,
            )
        )
        assert kept.get("/models").status_code == 200
        pieces = stack.enter_context(slow_stream(url, gateway, tokens=150))
        text = next(pieces)
        asking = stack.enter_context(Asking(url, gateway))

        done = reload(served, tmp_path)

        assert (done.returncode, done.stdout) == (0, "Generation 2 serves.\n"), done.stderr
        assert command.process.poll() is None
        assert workers_of(parent) - first, "the next generation has workers of its own"
        last = kept.get("/models")
        assert (last.status_code, last.headers["connection"]) == (200, "close")
        assert kept.get("/models").headers.get("connection") != "close"
        text += "".join(pieces)
        until(lambda: not any(map(runs, first)))
        assert ask(url, gateway, "say: the next generation").status_code == 200
        asking.__exit__()
        assert set(asking.statuses) == {200}
        assert command.stop() == 0
    assert events(text)[-1] == "[DONE]"
    rows = UsageRow.objects.filter(organization_id=gateway.organization.pk)
    assert rows.count() == len(asking.statuses) + 2
    assert {row.outcome for row in rows} == {"success"}


@pytest.mark.long
def test_a_session_is_told_and_goes_on(gateway: Gateway, served: Served, tmp_path: Path) -> None:
    with another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path), SVC_DRAIN_SECONDS="90") as (
        command,
        url,
    ):
        port = int(command.log.read_text().split("speech on http://127.0.0.1:")[1].split()[0])
        speech = speech_account(replace(gateway, speech_port=port))
        old = processes_of(command, 1)
        with speech.session() as session:
            assert reload(served, tmp_path).returncode == 0
            told = session.receive()
            assert told["type"] == "draining", told
            assert 60 < told["seconds"] <= 90
            session.text("The session goes on, and ends as it likes.")
            session.done()
            *frames, last = session.rest()
            assert (len(frames), last) == (1, {"type": "session.done"})
        until(lambda: not any(map(runs, old)))
        assert ask(url, gateway, "say: served").status_code == 200
    assert speech.row_when_written().outcome == "success"


@contextmanager
def gateway_behind_a_link(
    served: Served, directory: Path, first: str = "good", **environment: str
) -> Iterator[tuple[Command, str, Path]]:
    """A gateway whose program is found through the link ``current``, as in an installation by release."""
    for name, program in PROGRAMS.items():
        (directory / name).mkdir()
        (directory / name / "manage.py").write_text(program)
    current = directory / "current"
    current.symlink_to(first)
    port = free_port()
    command = Command(
        ["serve", "--port", str(port), "--speech-port", str(free_port())],
        {**served.environment, "SVC_DATA_DIR": str(directory), **environment},
        directory / "gateway.log",
        program=str(current / "manage.py"),
    )
    try:
        command.wait_for(f"127.0.0.1:{port}")
        yield command, f"http://127.0.0.1:{port}/v1", current
    finally:
        command.stop()


def switch(link: Path, target: str) -> None:
    new = link.with_name("new")
    new.symlink_to(target)
    new.rename(link)


@pytest.mark.long
def test_a_release_that_cannot_start_changes_nothing_and_the_next_one_may(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with gateway_behind_a_link(served, tmp_path) as (command, url, current):
        before = processes_of(command, 1)
        with Asking(url, gateway) as asking:
            switch(current, "bad")
            failed = reload(served, tmp_path)
            assert failed.returncode == 1
            assert "The running release goes on: worker " in failed.stderr
            assert "of the new release ended with 7" in failed.stderr
            assert workers_of(command.process.pid) == before

            switch(current, "good")
            assert reload(served, tmp_path).stdout == "Generation 2 serves.\n"
            until(lambda: not any(map(runs, before)))
        assert set(asking.statuses) == {200}
        program = Path(f"/proc/{command.process.pid}/cmdline").read_text().split("\0")[1]
        assert program == str(current / "manage.py")
    assert "the reload failed and nothing has changed" in command.log.read_text()


@pytest.mark.long
def test_a_release_that_is_not_ready_changes_nothing(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    """It would answer, but its ``/readyz`` is 503: every proxy that checks would leave it out."""
    with gateway_behind_a_link(served, tmp_path) as (command, url, current):
        before = processes_of(command, 1)
        with Asking(url, gateway) as asking:
            switch(current, "behind")
            failed = reload(served, tmp_path)
        assert failed.returncode == 1
        assert "The running release goes on: The new release runs, but was not" in failed.stderr
        assert set(asking.statuses) == {200}
        assert before <= workers_of(command.process.pid)
        assert fetch(f"{url.removesuffix('/v1')}/readyz").status_code == 200
        until(lambda: workers_of(command.process.pid) == before)
    assert "Run `svc migrate`; until then" in command.log.read_text()


@pytest.mark.long
@pytest.mark.redis
def test_a_reload_begins_although_a_process_of_the_running_release_dies_again_and_again(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    two = {"SVC_WORKERS": "2", "REDIS_URL": os.environ["SVC_TEST_REDIS_URL"]}
    with gateway_behind_a_link(served, tmp_path, "without_pages", **two) as found:
        command, url, current = found
        until(lambda: "ended with 7 and is replaced" in command.log.read_text())
        failed = reload(served, tmp_path)
        assert failed.returncode == 1
        assert "The running release goes on: page process " in failed.stderr
        switch(current, "good")
        assert reload(served, tmp_path).stdout == "Generation 2 serves.\n"
        assert ask(url, gateway, "say: served").status_code == 200


def test_a_worker_that_dies_after_a_reload_is_replaced(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path)) as (command, url):
        before = processes_of(command, 1)
        assert reload(served, tmp_path).returncode == 0
        (worker,) = workers_of(command.process.pid) - before
        os.kill(worker, signal.SIGKILL)
        until(lambda: not runs(worker))
        assert ask(url, gateway, "say: served").status_code == 200
        assert command.process.poll() is None, command.log.read_text()


@pytest.mark.long
def test_a_worker_that_starts_when_the_next_release_takes_over_ends(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path)) as (command, url):
        parent, (killed,) = command.process.pid, processes_of(command, 1)
        command.process.send_signal(signal.SIGHUP)
        (taking_over,) = until(lambda: workers_of(parent) - {killed})
        os.kill(killed, signal.SIGKILL)
        (replaced,) = until(lambda: workers_of(parent) - {killed, taking_over})
        os.kill(replaced, signal.SIGSTOP)
        until(lambda: "generation 2 serves" in command.log.read_text())
        os.kill(replaced, signal.SIGCONT)
        until(lambda: workers_of(parent) == {taking_over})
        assert ask(url, gateway, "say: served").status_code == 200


@pytest.mark.long
def test_a_second_sighup_during_a_reload_is_not_lost(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path)) as (command, url):
        processes_of(command, 1)
        until(lambda: ask(url, gateway, "say: served").status_code == 200)
        command.process.send_signal(signal.SIGHUP)
        until(lambda: len(workers_of(command.process.pid)) == 2)
        command.process.send_signal(signal.SIGHUP)
        until(lambda: "generation 3 serves" in command.log.read_text())
        assert ask(url, gateway, "say: served").status_code == 200


@pytest.mark.long
def test_sigterm_ends_both_generations(gateway: Gateway, served: Served, tmp_path: Path) -> None:
    with another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path)) as (command, url):
        with slow_stream(url, gateway, tokens=100) as pieces:
            text = next(pieces)
            assert reload(served, tmp_path).returncode == 0
            both = children(command.process.pid)
            assert len(workers_of(command.process.pid)) == 2
            command.process.terminate()
            text += "".join(pieces)
        assert command.process.wait(60) == 0
    assert not any(map(runs, both))
    assert events(text)[-1] == "[DONE]"


def test_a_gateway_under_nohup_takes_no_reload_and_reload_says_so(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits that it is ignored
        try:
            started = another_gateway(gateway, served, SVC_DATA_DIR=str(tmp_path))
            command, url = stack.enter_context(started)
        finally:
            signal.signal(signal.SIGHUP, before)
        done = reload(served, tmp_path)
        assert done.returncode == 1
        assert f"(process {command.process.pid}) takes no reload" in done.stderr
        assert ask(url, gateway, "say: there").status_code == 200


def test_without_a_gateway_reload_says_so(served: Served, tmp_path: Path) -> None:
    (tmp_path / "serve.json").write_text('{"pid": 1, "generation": 1}')  # of a killed one
    done = reload(served, tmp_path)

    assert done.returncode == 1
    assert f"No gateway runs on {tmp_path}" in done.stderr


@pytest.mark.long
def test_sockets_of_a_service_manager_are_served_on(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    """As systemd passes those of a socket unit (sd_listen_fds(3)), from descriptor 3 on."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [each.getsockname()[1] for each in opened]
        numbers = [each.fileno() for each in opened]
        passed = {"LISTEN_FDS": "2", "LISTEN_FDNAMES": "speech:inference"}
        process = subprocess.Popen(
            [sys.executable, "-c", LISTENING, *map(str, numbers)],
            cwd=ROOT,
            env={**os.environ, **served.environment, "SVC_DATA_DIR": str(tmp_path), **passed},
            pass_fds=numbers,
        )
        try:
            speech, inference = ports
            # The kernel keeps the connection until a worker takes it: nobody is refused.
            live = fetch(f"http://127.0.0.1:{inference}/livez")
            health = fetch(f"http://127.0.0.1:{speech}/health")
            until(lambda: reload(served, tmp_path).returncode == 0)
            again = fetch(f"http://127.0.0.1:{inference}/livez")
        finally:
            process.terminate()
            assert process.wait(60) == 0
    assert (live.status_code, health.status_code, again.status_code) == (200, 200, 200)
