"""The server process: addresses, workers, and stopping without losing anything.

At the end ``manage.py runserver``: Daphne serves both surfaces at a developer's desk.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from accounts.models import Scope
from svc_project.serving import listeners
from tests.support.gateways import Served
from tests.support.live import (
    NO_TLS,
    ROOT,
    Command,
    Gateway,
    events,
    fetch,
    free_port,
    manage,
    run,
)
from tests.support.served import another_gateway, port_of, refuses, slow_stream
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation
from tests.support.until import until


def test_sigterm_lets_running_streams_finish_and_answers_once_more_on_open_connections(
    gateway: Gateway, served: Served
) -> None:
    """New connections are refused, so that a proxy tries another server; idle ones are closed soon."""
    with (
        another_gateway(gateway, served) as (command, base_url),
        httpx2.Client(
            base_url=base_url, headers=gateway.headers, verify=NO_TLS, timeout=60
        ) as kept,
        socket.create_connection(("127.0.0.1", port_of(base_url)), timeout=60) as idle,
    ):
        assert kept.get("/models").status_code == 200
        with slow_stream(base_url, gateway, tokens=100) as pieces:
            text = next(pieces)
            command.process.terminate()
            until(lambda: refuses(base_url))
            last = kept.get("/models")
            assert idle.recv(1) == b"", "nothing was asked on it"
            text += "".join(pieces)

        assert (last.status_code, last.headers["connection"]) == (200, "close")
        with pytest.raises(httpx2.ConnectError):
            kept.get("/models")
        assert events(text)[-1] == "[DONE]"
        assert command.process.wait(60) == 0
    (row,) = [row for row in gateway.rows() if row.streamed]
    assert row.outcome == "success"
    assert row.backend_reported_output_tokens == 100


@pytest.mark.long
def test_connections_that_wait_when_the_addresses_are_closed_are_answered(
    gateway: Gateway, served: Served
) -> None:
    """The kernel has accepted them, so a proxy sends no other server what it has sent on one."""
    with (
        another_gateway(gateway, served, SVC_DRAIN_DELAY_SECONDS="1") as (command, base_url),
        ExitStack() as stack,
    ):
        address = base_url.removesuffix("/v1")
        worker = command.worker
        command.process.terminate()
        until(lambda: httpx2.get(f"{address}/readyz", verify=NO_TLS).status_code == 503)
        os.kill(worker, signal.SIGSTOP)
        place = ("127.0.0.1", port_of(base_url))
        waiting = [
            stack.enter_context(socket.create_connection(place, timeout=60)) for _ in range(20)
        ]
        for each in waiting:
            each.sendall(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        time.sleep(1.2)  # past the delay: it closes the addresses first when it goes on
        os.kill(worker, signal.SIGCONT)

        assert [each.recv(12) for each in waiting] == [b"HTTP/1.1 200"] * 20
        assert command.process.wait(60) == 0


def test_connections_are_refused_until_a_server_listens() -> None:
    with listeners.bind("127.0.0.1", 0) as reserved, socket.socket() as probe:
        assert probe.connect_ex(reserved.getsockname()) == errno.ECONNREFUSED
        assert not reserved.get_inheritable()


PROGRAM = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from svc_project.serving import lifeline, supervisor
if sys.argv[1] == "serve":
    supervisor._RESTART_SECONDS = 0.0
    sys.exit(supervisor.main(sys.argv[2:]))
"""
UNREADY = "lifeline.WorkerEnd(int(sys.argv[-1])).introduce(lifeline.Plan(1, 0.0, '/nowhere/x'))\n"


@pytest.mark.parametrize(
    ("worker", "status", "words"),
    [
        ("sys.exit('The settings are wrong.')", 1, ["The settings are wrong."]),
        ("sys.exit(3)", 3, []),
        (
            f"if '--skip-checks' not in sys.argv: {UNREADY}sys.exit(4)",
            1,
            ["No worker became ready", "is the 5th process that ended, with 4"],
        ),
    ],
    ids=["it says why", "its status is passed on", "it ends later in its start"],
)
def test_a_parent_whose_worker_never_starts_gives_up(
    tmp_path: Path, worker: str, status: int, words: list[str]
) -> None:
    program = tmp_path / "manage.py"
    program.write_text(PROGRAM + worker)
    done = run(sys.executable, program, "serve", "--port", "0", "--speech-port", "0")
    assert done.returncode == status
    assert all(each in done.stderr for each in words), done.stderr
    assert "Traceback" not in done.stderr


def test_several_workers_need_a_shared_store() -> None:
    refused = manage("serve", "--workers", "2", REDIS_URL="")

    assert refused.returncode == 2
    assert "REDIS_URL" in refused.stderr


def test_requests_leave_no_connection_or_file_open(gateway: Gateway) -> None:
    read = {"authorization": f"Bearer {gateway.mint(Scope.READ)}"}

    def ask_each_view() -> None:
        for path in ("/v1/models", "/v1/usage", "/v1/usage/export", "/admin/login/"):
            assert httpx2.get(gateway.url + path, headers=read).status_code == 200

    def open_files() -> int:
        return len(os.listdir(f"/proc/{gateway.command.worker}/fd"))

    ask_each_view()
    before = open_files()
    for _ in range(15):
        ask_each_view()

    until(lambda: open_files() <= before + 5)


@pytest.fixture
def at_a_desk(gateway: Gateway, served: Served) -> Iterator[Gateway]:
    """The gateway of the development server; its speech surface has the name ``localhost``."""
    port = free_port()
    command = Command(
        ["runserver", "--noreload", f"127.0.0.1:{port}"],
        {**served.environment, "SPEECH_HOSTS": "localhost"},
        served.command.log.with_name(f"runserver-{port}.log"),
    )
    try:
        command.wait_for(f"127.0.0.1:{port}")
        yield replace(gateway, port=port, speech_port=port)
    finally:
        command.stop()
    assert "Starting ASGI/Daphne" in command.log.read_text()


def test_runserver_answers_chats_streams_and_speech_and_writes_their_rows(
    at_a_desk: Gateway,
) -> None:
    whole = at_a_desk.chat("say: hello")
    stream = at_a_desk.chat("say: hello", stream=True)

    assert whole.json()["choices"][0]["message"]["content"] == "hello"
    assert events(stream.text)[-1] == "[DONE]"
    rows = at_a_desk.rows_when(2)
    assert [row.outcome for row in rows] == ["success", "success"]

    account = speech_account(at_a_desk)
    address = f"localhost:{at_a_desk.port}/v1/audio/speech"
    body = {"voice": "ava", "input": "Hello there."}
    spoken = fetch(f"http://{address}", "POST", json=body, key=account.key)
    with account.connect(address=f"ws://{address}/stream") as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava")
        assert session.receive()["type"] == "ready"
        session.text("Hello there. ")
        session.done()
        messages = session.rest()

    assert spoken.status_code == 200, spoken.text
    assert spoken.content.startswith(b"RIFF")
    assert messages[-1] == {"type": "session.done"}


def test_sigterm_in_a_start_that_waits_for_the_database_is_no_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        port = silent.getsockname()[1]
        arguments = ["serve", "--port", str(free_port()), "--speech-port", str(free_port())]
        environment = {
            "DATABASE_URL": f"postgres://nobody@127.0.0.1:{port}/nothing",
            "SVC_DATA_DIR": str(tmp_path),
        }
        command = Command(arguments, environment, tmp_path / "log")
        connection, _ = silent.accept()
        with connection:
            assert command.stop() == 0

    assert "ERROR svc_project.serving.server" not in command.log.read_text()


@pytest.mark.parametrize("names", ["", "inference:speech", "speech:inference"])
def test_sockets_of_a_service_manager_are_told_apart_by_order_or_name(
    monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        for number, each in enumerate(opened):
            os.dup2(each.fileno(), 900 + number)
        monkeypatch.setattr(listeners, "_FIRST_GIVEN", 900)
        environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "2", "LISTEN_FDNAMES": names}
        given = [stack.enter_context(each) for each in listeners.given(environment)]
        wanted = reversed(opened) if names.startswith("speech") else opened
        assert [each.getsockname() for each in given] == [each.getsockname() for each in wanted]
    assert environment == {}
