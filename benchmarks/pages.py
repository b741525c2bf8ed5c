"""``python -m benchmarks.pages [--rows N] [--before TREE]``: measures pages of the console and the admin.

Needs ``SVC_TEST_DATABASE_URL`` (a postgres:// address); creates a database there and drops it. Prints
a Markdown table: for each page the CPU time of all processes of the gateway for one load, and the time of
the whole answer over the socket, one request at a time. ``--before`` measures the gateway of an older
checkout too, in turns, on the same database: with ``TREE/.venv``, where there is one. The last result is in
docs/measurements/usage.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.processes import Server, free_port
from benchmarks.tables import table
from benchmarks.usage import gateway_with_rows

if TYPE_CHECKING:
    from accounts.models import User

WANTED_MS: Final = 300
WANTED_CPU_MS: Final = 40
LOADS: Final = 5
"""Loads between two readings of the CPU time, which is counted in steps of 10 ms."""


def session_of(user: User) -> str:
    """The cookie of a new login of ``user``."""
    from django.test import Client

    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


def _cookies(organization_id: str) -> tuple[str, str]:
    """The cookies of a member of the organization, and of a superuser."""
    from accounts.models import Membership, User

    member = User.objects.create_user("member", password="not used here")
    Membership.objects.create(user=member, organization_id=organization_id)
    operator = User.objects.create_superuser("operator", password="not used here")
    return session_of(member), session_of(operator)


def _pages(organization_id: str) -> Iterator[tuple[str, bool]]:
    """The addresses of pages, and whether an operator opens them."""
    from accounts.models import ApiKey
    from usage.models import UsageRow

    today = datetime.now(UTC).date()
    period = f"start={today - timedelta(days=92)}&end={today}"
    key = ApiKey.objects.filter(organization_id=organization_id).first()
    failed = UsageRow.objects.filter(organization_id=organization_id, outcome__contains="disc")
    row = failed.latest("occurred_at")
    assert key is not None
    console = (
        "",
        f"usage?{period}",
        f"usage?{period}&by=model",
        f"usage?{period}&by=key",
        f"usage/totals.csv?{period}&by=key",
        f"usage?{period}&surface=speech",
        "requests",
        "requests?outcome=client_disconnected",
        "requests?model=acme/model-3&least_cost=0.05",
        f"requests/{row.request_id}",
        "models",
        "keys",
        f"keys/{key.pk}",
        "keys/new",
        "playground",
        "voices",
    )
    admin = (
        "",
        "usage/usagerow/",
        "usage/usagerow/?outcome=client_disconnected",
        f"usage/usagerow/?q={row.request_id}",
        f"usage/usagerow/{row.pk}/change/",
        "usage/usagerow/sums/",
        "usage/speechrow/",
        "accounts/organization/",
        "accounts/apikey/",
        f"accounts/apikey/{key.pk}/change/",
        "accounts/auditentry/",
    )
    for page in console:
        yield f"/console/{organization_id}/{page}", False
    for page in admin:
        yield f"/admin/{page}", True


@dataclass
class Tree:
    """The gateway of a checkout, and what was measured of each page: CPU and wall times in milliseconds."""

    server: Server
    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def load(self, address: str, cookie: str) -> int:
        """Load a page; return its status."""
        client = HTTPConnection("127.0.0.1", self.server.port, timeout=600)
        client.request("GET", address, headers={"cookie": cookie, "accept-encoding": "gzip"})
        answer = client.getresponse()
        answer.read()
        client.close()
        return answer.status

    def address(self, page: str, organization_id: str, cookie: str) -> str | None:
        """Where the page is, which a first load warms up; None where this checkout has none."""
        # Addresses of old checkouts do not name the organization.
        for each in (page, page.replace(f"/{organization_id}/", "/")):
            if self.load(each, cookie) == 200:
                return each
        return None

    def measure(self, page: str, address: str, cookie: str) -> None:
        before = self.server.cpu_seconds()
        for _ in range(LOADS):
            began = time.perf_counter()
            self.load(address, cookie)
            self.wall.setdefault(page, []).append((time.perf_counter() - began) * 1000)
        cpu = (self.server.cpu_seconds() - before) * 1000 / LOADS
        self.cpu.setdefault(page, []).append(cpu)

    def cells(self, page: str) -> list[str]:
        if page not in self.cpu:
            return ["-", "-"]
        return [f"{median(self.cpu[page]):.0f}", f"{median(self.wall[page]):.0f}"]


@contextmanager
def _gateway_of(root: Path) -> Iterator[Server]:
    """The gateway of an older checkout, on the database of this process."""
    own = root / ".venv/bin/python"
    port, speech_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        server = Server(
            ["manage.py", "serve", "--port", str(port), "--speech-port", str(speech_port)],
            port,
            Path(name) / "gateway.log",
            root=root,
            program=str(own) if own.exists() else sys.executable,
        )
        try:
            yield server
        finally:
            server.stop()


def _line(page: str, trees: list[Tree]) -> list[str]:
    now = trees[-1]
    shown = page.partition("req_")[0]
    is_met = max(now.wall[page]) <= WANTED_MS and median(now.cpu[page]) <= WANTED_CPU_MS
    cells = [cell for tree in trees for cell in tree.cells(page)]
    return [f"`{shown}`", *cells, f"{max(now.wall[page]):.0f}", "met" if is_met else "**not met**"]


def _measured(trees: list[Tree], organization_id: str, rounds: int) -> list[list[str]]:
    """Load each page with all ``trees`` in turns; a line of the table for each."""
    member, operator = _cookies(organization_id)
    lines = []
    for page, is_operators in _pages(organization_id):
        cookie = operator if is_operators else member
        found = [(tree, tree.address(page, organization_id, cookie)) for tree in trees]
        if found[-1][1] is None:
            raise SystemExit(f"{page} cannot be opened.")
        for _ in range(rounds):
            for tree, address in found:
                if address is not None:
                    tree.measure(page, address, cookie)
        lines.append(_line(page, trees))
        print(*lines[-1], file=sys.stderr, flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the organization")
    parser.add_argument("--quick", action="store_true", help="100 000 rows")
    parser.add_argument("--rounds", type=int, default=5, help=f"of {LOADS} loads of each page")
    parser.add_argument("--before", type=Path, help="an older checkout to compare with")
    arguments = parser.parse_args()
    count = 100_000 if arguments.quick else arguments.rows
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, one worker, "
        f"PostgreSQL on the same machine, {datetime.now(UTC):%Y-%m-%d}, "
        f"load average {os.getloadavg()[0]:.1f}."
    )
    with ExitStack() as stack:
        reader = stack.enter_context(gateway_with_rows(count))
        from benchmarks import ledger
        from usage.queries import days

        ledger.fill_speech(reader.organization_id, count // 5)
        days.sum_closed_days()
        trees = [Tree(reader.server)]
        if arguments.before:
            trees.insert(0, Tree(stack.enter_context(_gateway_of(arguments.before.resolve()))))
        for tree in trees:
            tree.server.settle()
        lines = _measured(trees, reader.organization_id, arguments.rounds)
    heads = ["page"]
    if arguments.before:
        heads += ["before: CPU, ms", "median, ms"]
    loads = LOADS * arguments.rounds
    heads += ["CPU, ms", "median, ms", f"longest of {loads}", f"{WANTED_CPU_MS} and {WANTED_MS} ms"]
    print(table(f"Pages at {count:,} rows of chats and {count // 5:,} of speech", heads, lines))


if __name__ == "__main__":
    main()
