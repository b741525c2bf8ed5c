"""Mixed load on a real server while things break, one after another; then the books are compared.

    python -m tests.faults.soak [--minutes 5] [--database sqlite|postgresql] [--seed N] [--at-once 6]

Run by hand; it makes everything it needs (a directory, a PostgreSQL cluster by ``initdb``) and removes
it. Faults: SIGKILL of the gateway, a database that is locked, stopped or restarted at once, a full disk
(RLIMIT_FSIZE), a sync that fails, a journal's directory that is gone. Prints a line for each fault with the
seconds until the worker is back on the database and owes nothing, then what the oracle found:
requests without a row, rows that the clients contradict, and what ``verify_ledger`` says. The exit
status is 1 when it found anything.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import django
import httpx2
import psycopg

import tests.environment  # noqa: F401  # before Django reads its settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
django.setup()

from tests.live import NO_TLS, ROOT, Command, free_port  # noqa: E402
from tests.own_servers import Postgresql  # noqa: E402

BACK_SECONDS = 5.0
_PATIENCE = 60.0
_FAILING_SYNC = """
import os
_sync = os.fdatasync
def fdatasync(file):
    if os.path.exists(os.environ["SOAK_FAILING_SYNC"]):
        raise OSError(5, "Input/output error")
    _sync(file)
os.fdatasync = fdatasync
"""
_ROWS = (
    "SELECT request_id, outcome FROM usage_usagerow UNION ALL "
    "SELECT request_id, outcome FROM usage_speechrow"
)


@dataclass(frozen=True)
class Seen:
    """One request from outside; ``marker`` stands in a chat's prompt, None is a speech request."""

    marker: str | None
    request_id: str | None
    status: int | None
    code: str | None
    complete: bool


@dataclass
class Place:
    """Everything that runs: the gateway (replaced when it is killed), its model server, its database."""

    directory: Path
    environment: dict[str, str]
    port: int
    speech_port: int
    postgresql: Postgresql | None
    keys: dict[str, str] = field(default_factory=dict)
    """Secrets by scope."""
    gateway: Command | None = None
    seen: list[Seen] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def journal(self) -> Path:
        return self.directory / "data" / "journal"

    def manage(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start_gateway(self) -> None:
        ports = ["--port", str(self.port), "--speech-port", str(self.speech_port)]
        environment = {**self.environment, "PYTHONPATH": str(self.directory / "shim")}
        self.gateway = Command(["serve", *ports], environment, self.directory / "gateway.log")
        deadline = time.monotonic() + _PATIENCE * 2
        while not self.figures():
            assert time.monotonic() < deadline, "the gateway does not start"
            time.sleep(0.05)

    def figures(self) -> dict[str, float]:
        """The gateway's metrics of the ledger; empty when it does not answer."""
        with suppress(httpx2.HTTPError):
            text = httpx2.get(
                f"http://127.0.0.1:{self.port}/metrics", timeout=5, verify=NO_TLS
            ).text
            return {
                name: float(value)
                for name, value in re.findall(r"^(svc_\w+)\{worker=\"0\"\} (\S+)$", text, re.M)
            }
        return {}

    def connect(self) -> Any:
        if self.postgresql is not None:
            return psycopg.connect(self.postgresql.url)
        return sqlite3.connect(self.directory / "svc.sqlite3", timeout=30, isolation_level=None)

    @property
    def pid(self) -> int:
        assert self.gateway is not None
        return self.gateway.process.pid


@contextmanager
def place(database: str) -> Iterator[Place]:
    directory = Path(tempfile.mkdtemp(prefix="svc-soak-"))
    postgresql: Postgresql | None = None
    running: list[Command] = []
    found: Place | None = None
    try:
        if database == "postgresql":
            postgresql = Postgresql(directory)
        (directory / "data").mkdir()
        (directory / "shim").mkdir()
        (directory / "shim" / "sitecustomize.py").write_text(_FAILING_SYNC)
        environment = {
            "SVC_DATA_DIR": str(directory / "data"),
            "DATABASE_URL": postgresql.url if postgresql else f"sqlite:///{directory}/svc.sqlite3",
            "SOAK_FAILING_SYNC": str(directory / "failing-sync"),
            "SVC_CHANGE_POLL_SECONDS": "0.5",
            "SVC_KEY_CACHE_SECONDS": "3600",
            "SECRET_KEY": "soak" * 16,
        }
        found = Place(directory, environment, free_port(), free_port(), postgresql)
        model_port = free_port()
        record = str(directory / "requests.jsonl")
        arguments = ["simulate_backend", "--port", str(model_port), "--record", record]
        running.append(Command(arguments, environment, directory / "simulator.log"))
        found.manage("migrate", "-v0")
        catalog = directory / "catalog.toml"
        text = (ROOT / "tests/catalog.toml").read_text().replace("PORT", str(model_port))
        catalog.write_text(text)
        found.manage("load_catalog", str(catalog))
        found.manage("create_organization", "soak")
        for scope in ("inference", "speech"):
            made = found.manage("create_key", "soak", "--scope", scope, "--json")
            found.keys[scope] = json.loads(made)["key"]
        found.start_gateway()
        yield found
    finally:
        if found is not None and found.gateway is not None:
            found.gateway.kill()
        for command in running:
            command.kill()
        if postgresql is not None:
            with suppress(subprocess.CalledProcessError):
                postgresql.stop()
        shutil.rmtree(directory, ignore_errors=True)


# -- load ----------------------------------------------------------------------------------------


def load(place: Place, number: int) -> None:
    """Ask, one request after the other: whole and streamed chats, now and then speech."""
    dice = random.Random(number)
    while not place.stopping.is_set():
        what = dice.random()
        if what < 0.1:
            seen = speak(place)
        else:
            seen = chat(place, streamed=what < 0.6, tokens=dice.choice([3, 10, 40]))
        place.seen.append(seen)
        if seen.status != 200:
            time.sleep(0.1)


def chat(place: Place, *, streamed: bool, tokens: int) -> Seen:
    marker = f"soak-{uuid.uuid4().hex}"
    text = f"{marker}. [[sim tokens={tokens} pace=100]]"
    body = {
        "model": "acme/demo-8b",
        "stream": streamed,
        "messages": [{"role": "user", "content": text}],
    }
    url = f"http://127.0.0.1:{place.port}/v1/chat/completions"
    return _ask(place, marker, url, body)


def speak(place: Place) -> Seen:
    body = {"model": "tts", "voice": "ava", "input": "Bees fly.", "response_format": "wav"}
    return _ask(place, None, f"http://127.0.0.1:{place.speech_port}/v1/audio/speech", body)


def _ask(place: Place, marker: str | None, url: str, body: dict[str, Any]) -> Seen:
    headers: dict[str, str] = {}
    status, read, whole = None, b"", False
    key = place.keys["inference" if marker else "speech"]
    authorization = {"authorization": f"Bearer {key}"}
    try:
        with httpx2.stream(
            "POST", url, json=body, headers=authorization, timeout=_PATIENCE, verify=NO_TLS
        ) as answer:
            status, headers = answer.status_code, dict(answer.headers)
            for piece in answer.iter_bytes():
                read += piece
            whole = True
    except httpx2.TransportError:
        pass
    code = re.search(rb'"code": ?"(\w+)"', read) if status != 200 or b'"error"' in read else None
    is_done = whole and status == 200 and (not body.get("stream") or b"[DONE]" in read)
    return Seen(
        marker,
        headers.get("x-request-id"),
        status,
        code.group(1).decode() if code else None,
        bool(is_done and code is None),
    )


# -- faults --------------------------------------------------------------------------------------


def kill(place: Place, dice: random.Random) -> None:
    assert place.gateway is not None
    place.gateway.kill()
    place.start_gateway()


def killed_while_it_recovers(place: Place, dice: random.Random) -> None:
    for _ in range(3):
        kill(place, dice)
        time.sleep(dice.uniform(0, 0.5))


def lock(place: Place, dice: random.Random) -> None:
    with closing(place.connect()) as other:
        if place.postgresql is not None:
            other.execute("LOCK TABLE usage_usagerow, usage_speechrow IN EXCLUSIVE MODE")
        else:
            other.execute("BEGIN IMMEDIATE")
        time.sleep(dice.uniform(0.3, 3))
        other.rollback()


def lock_and_kill(place: Place, dice: random.Random) -> None:
    with closing(place.connect()) as other:
        if place.postgresql is not None:
            other.execute("LOCK TABLE usage_usagerow, usage_speechrow IN EXCLUSIVE MODE")
        else:
            other.execute("BEGIN IMMEDIATE")
        time.sleep(dice.uniform(0.3, 1))
        assert place.gateway is not None
        place.gateway.kill()
        other.rollback()
    place.start_gateway()


def restart_database(place: Place, dice: random.Random) -> None:
    assert place.postgresql is not None
    place.postgresql.stop()
    time.sleep(dice.uniform(0, 3))
    place.postgresql.start()


def fill_the_disk(place: Place, dice: random.Random) -> None:
    """No file of the gateway grows: neither the journal, nor SQLite, nor its log."""
    before = resource.prlimit(place.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(place.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    time.sleep(dice.uniform(1, 3))
    resource.prlimit(place.pid, resource.RLIMIT_FSIZE, before)


def fail_to_sync(place: Place, dice: random.Random) -> None:
    mark = Path(place.environment["SOAK_FAILING_SYNC"])
    mark.touch()
    lock(place, dice)
    mark.unlink()


def lose_the_journal(place: Place, dice: random.Random) -> None:
    """The directory cannot be used for a while; what is open stays open."""
    aside = place.journal.with_name("aside")
    place.journal.rename(aside)
    place.journal.write_bytes(b"")
    time.sleep(dice.uniform(0.5, 2))
    place.journal.unlink()
    aside.rename(place.journal)


Fault = Callable[[Place, random.Random], None]
FAULTS: list[Fault] = [
    kill,
    lock,
    lock_and_kill,
    killed_while_it_recovers,
    fill_the_disk,
    fail_to_sync,
    lose_the_journal,
]


def seconds_until_back(place: Place) -> float:
    """Until the gateway is on the database and owes it nothing."""
    began = time.monotonic()
    while time.monotonic() - began < _PATIENCE:
        figures = place.figures()
        if figures.get("svc_ledger_database_up") == 1 and not figures.get("svc_ledger_rows_owed"):
            break
        time.sleep(0.05)
    return time.monotonic() - began


# -- the oracle ----------------------------------------------------------------------------------


def disagreements(place: Place) -> list[str]:
    """What clients, model server and ledger do not tell alike."""
    with closing(place.connect()) as database:
        rows = database.execute(_ROWS).fetchall()
    outcomes = dict(rows)
    found = [f"{len(rows) - len(outcomes)} rows twice"] if len(rows) != len(outcomes) else []
    for each in place.seen:
        outcome = outcomes.get(each.request_id or "")
        if each.complete and outcome != "success":
            found.append(f"{each.request_id}: answered whole, its row: {outcome}")
        if each.code == "internal_error" and each.status == 500 and outcome == "success":
            found.append(f"{each.request_id}: told 500, its row: {outcome}")
        if each.status == 200 and outcome is None:
            found.append(f"{each.request_id}: an answer that began, without a row")
    found += _unmetered(place, outcomes)
    return found


def _unmetered(place: Place, outcomes: dict[str, str]) -> list[str]:
    """Requests that reached the model server and have no row.

    A client that heard nothing does not know its id: those are counted against the rows that
    nobody claims.
    """
    lines = (place.directory / "requests.jsonl").read_text().splitlines()
    asked = len({json.loads(line)["id"] for line in lines})
    ids = {each.request_id: each for each in place.seen if each.request_id}
    claimed = sum(
        request_id in ids and ids[request_id].marker is not None for request_id in outcomes
    )
    unclaimed = sum(request_id not in ids for request_id in outcomes)
    if asked > claimed + unclaimed:
        return [f"{asked} chats reached the model server, {claimed + unclaimed} have rows"]
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=6)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    dice = random.Random(options.seed)
    with place(options.database) as here:
        faults = [*FAULTS, *([restart_database] if here.postgresql else [])]
        threads = [
            threading.Thread(target=load, args=(here, number), daemon=True)
            for number in range(options.at_once)
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + options.minutes * 60
        late = []
        print("| Fault | Back after, s | Requests so far |\n|---|---:|---:|", flush=True)
        while time.monotonic() < deadline:
            dice.shuffle(faults)
            for fault in faults:
                time.sleep(dice.uniform(0.5, 2))
                fault(here, dice)
                back = seconds_until_back(here)
                if back > BACK_SECONDS:
                    late.append(f"{fault.__name__}: back after {back:.1f} s")
                print(f"| {fault.__name__} | {back:.1f} | {len(here.seen)} |", flush=True)
        here.stopping.set()
        for thread in threads:
            thread.join(_PATIENCE)
        # The last gateway is killed too: what it leaves is adopted by one that nobody asks.
        kill(here, dice)
        seconds_until_back(here)
        time.sleep(2)
        wrong = disagreements(here)
        try:
            here.manage("verify_ledger")
        except subprocess.CalledProcessError as error:
            wrong.append(f"verify_ledger: {error.stdout}")
        told = Counter((each.status, each.code) for each in here.seen)
        print(f"\n{len(here.seen)} requests: {dict(told)}")
        print("\n".join([*wrong, *late]) or "0 rows missing, 0 twice, 0 wrong; never late.")
    raise SystemExit(bool(wrong or late))


if __name__ == "__main__":
    main()
