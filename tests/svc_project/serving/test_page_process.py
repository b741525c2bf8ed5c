"""The page process of ``serve`` with several workers: chats do not need it, and it is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from accounts.keys.keys import mint
from accounts.models import Scope
from core.sharing.processors import Niceness
from tests.support.gateways import Served
from tests.support.live import Command, Gateway, fetch, manage
from tests.support.metrics import Metrics
from tests.support.processes import page_process_of, runs, workers_of
from tests.support.served import ask
from tests.support.served import two_workers as served_by_two
from tests.support.until import until

pytestmark = [pytest.mark.timeout(300), pytest.mark.redis]

SLOW = 60.0


@contextmanager
def two_workers(
    gateway: Gateway, served: Served, directory: Path, **environment: str
) -> Iterator[tuple[Command, str, int]]:
    """A gateway with two workers, its base URL, and its page process, which has answered."""
    own = {"SVC_DATA_DIR": str(directory), "TMPDIR": str(directory)}
    with served_by_two(gateway, served, **own, **environment) as (command, url):
        until(lambda: len(workers_of(command.process.pid)) == 2)
        assert models(url, gateway).status_code == 200
        assert list(directory.glob("svc-pages-*"))
        yield command, url, until(lambda: page_process_of(command.process.pid))


def models(url: str, gateway: Gateway, timeout: float = 30) -> httpx2.Response:
    return fetch(f"{url}/models", key=gateway.key, timeout=timeout)


def refused_form(command: Command, url: str) -> list[str]:
    """The lines of the log with the id of a form that Django refuses, in both processes."""
    login = f"{url.removesuffix('/v1')}/console/login"
    refused = fetch(login, "POST", data={"username": "a"})
    assert refused.status_code == 403
    request_id = refused.headers["x-request-id"]

    def lines() -> list[str]:
        return [line for line in command.log.read_text().splitlines() if request_id in line]

    return until(lambda: found if len(found := lines()) == 2 else None)


def test_chats_do_not_need_it_downloads_come_through_it_and_it_ends_after_the_workers(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with two_workers(gateway, served, tmp_path, SVC_REQUEST_LOG="true") as (command, url, found):
        said, logged = sorted(refused_form(command, url))
        assert "Forbidden (CSRF" in said, "the page process has the worker's id"
        assert json.loads(logged)["status"] == 403
        os.kill(found, signal.SIGSTOP)
        try:
            answers = [ask(url, gateway, "say: still here").status_code for _ in range(5)]
            with pytest.raises(httpx2.TimeoutException):
                models(url, gateway, timeout=1)
        finally:
            os.kill(found, signal.SIGCONT)
        assert answers == [200] * 5
        assert models(url, gateway).status_code == 200
        secret = mint(gateway.organization, Scope.READ, "test").secret

        def lines() -> list[str]:
            answer = fetch(f"{url}/usage/export?format=csv", key=secret)
            assert answer.headers["content-type"].startswith("text/csv")
            return answer.text.strip().splitlines()

        until(lambda: len(lines()) == 1 + 5)  # the newest rows appear after a margin
        os.kill(found, signal.SIGTERM)  # as a service manager signals every process of a group
        assert models(url, gateway).status_code == 200
        assert command.stop(SLOW) == 0
        assert not runs(found)
    assert list(tmp_path.glob("svc-pages-*")) == []


@pytest.mark.long
def test_a_page_process_that_hangs_or_is_killed_is_replaced(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with two_workers(gateway, served, tmp_path, SVC_WORKER_BLOCKED_SECONDS="8") as (
        command,
        url,
        stopped,
    ):
        os.kill(stopped, signal.SIGSTOP)
        until(lambda: not runs(stopped))
        killed = until(
            lambda: found if (found := page_process_of(command.process.pid)) != stopped else None
        )
        assert models(url, gateway, timeout=SLOW).status_code == 200
        os.kill(killed, signal.SIGKILL)
        until(lambda: page_process_of(command.process.pid) not in (killed, None))
        assert models(url, gateway, timeout=SLOW).status_code == 200
        assert ask(url, gateway, "say: hello").status_code == 200
        metrics = f"{url.removesuffix('/v1')}/metrics"
        name = "svc_worker_restarts_total"
        until(lambda: Metrics(fetch(metrics).text).sum(name, worker="pages") == 2)
        assert command.stop(SLOW) == 0
        log = command.log.read_text()
    assert f"page process {stopped} hangs: its event loop" in log
    assert f"page process {killed} ended with -9 and is replaced" in log
    assert list(tmp_path.glob("svc-pages-*")) == []


@pytest.mark.long
def test_it_ends_and_tidies_up_when_parent_and_workers_are_killed(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    with two_workers(gateway, served, tmp_path) as (command, _, found):
        os.kill(command.process.pid, signal.SIGSTOP)  # so that it replaces no worker
        for worker in workers_of(command.process.pid):
            os.kill(worker, signal.SIGKILL)
        command.process.kill()
        until(lambda: not runs(found))
    assert list(tmp_path.glob("svc-pages-*")) == []


PRIORITIES = """
import os, socket, sys
import django
django.setup()
from svc_project.serving import page_process
def noted(word, *ignored):
    print(word, os.getpriority(os.PRIO_PROCESS, 0), flush=True)
page_process.load_pages = lambda: noted("loads")
page_process.uvloop.run = lambda serving: noted("serves", serving.close())
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    page_process.run(listener, None, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities on Linux only")
def test_it_loads_its_pages_before_it_stands_back_behind_the_workers(tmp_path: Path) -> None:
    """Behind busy workers the loading took half a minute, which the first pages waited for."""
    address = tmp_path / "pages" / "socket"
    address.parent.mkdir()
    command = [sys.executable, "-c", PRIORITIES, str(address)]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "svc_project.settings"}
    own = os.getpriority(os.PRIO_PROCESS, 0)

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    loads, serves = (int(line.split()[1]) for line in ran.stdout.splitlines())
    assert loads == own
    assert serves == max(own, Niceness.LONG_WORK)


def test_a_directory_with_too_long_a_path_is_named_at_the_start(
    served: Served, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    redis = os.environ["SVC_TEST_REDIS_URL"]
    environment = {**served.environment, "REDIS_URL": redis, "TMPDIR": str(long)}
    ended = manage("serve", "--workers=2", "--port=0", "--speech-port=0", **environment)
    assert ended.returncode == 1
    assert "Set TMPDIR to a directory of at most 80 characters" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(long.iterdir()) == []
