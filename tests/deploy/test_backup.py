"""What docs/operate/backup.md says is enough: the database, the secrets, and the journal of each host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.support.gateways import Served, launch, postgresql_database
from tests.support.live import Gateway, fetch, manage, output_of, run
from tests.support.servers.programs import debian_program
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

pytestmark = [pytest.mark.postgresql, pytest.mark.long]


@pytest.fixture
def restored(served: Served) -> Iterator[str]:
    """The address of an empty database on the server of the tests."""
    with postgresql_database(f"restored_{os.getpid()}") as address:
        yield address


def rows(url: str, gateway: Gateway) -> int:
    with psycopg.connect(url) as link:
        found = link.execute(
            "SELECT count(*) FROM usage_usagerow WHERE organization_id = %s",
            [gateway.organization.pk],
        ).fetchone()
    return int(found[0]) if found else 0


def test_a_backup_and_the_journals_bring_every_row_back(
    gateway: Gateway,
    served: Served,
    start_gateway: Callable[..., Gateway],
    restored: str,
    tmp_path: Path,
) -> None:
    """Three rows are in the backup; the host dies with two more, while the database is away."""
    dump, restore = (debian_program(name, "postgresql") for name in ("pg_dump", "pg_restore"))
    environment = served.environment
    live = urlsplit(environment["DATABASE_URL"])
    with FaultProxy(live.port or 5432, live.hostname or "127.0.0.1") as way:
        behind = live._replace(netloc=f"{live.username}@127.0.0.1:{way.port}").geturl()
        host = start_gateway(SVC_DATA_DIR=str(tmp_path / "lost"), DATABASE_URL=behind)
        for number in range(3):
            assert host.chat(f"say: row {number}").status_code == 200
        until(lambda: rows(live.geturl(), gateway) == 3)
        output_of(run(dump, "-Fc", "--file", tmp_path / "svc.dump", live.geturl()))
        way.refuse()
        for number in range(2):
            assert host.chat(f"say: later row {number}").status_code == 200
        host.command.kill()

    output_of(run(restore, "--no-owner", "-d", restored, tmp_path / "svc.dump"))
    shutil.copytree(tmp_path / "lost/journal", tmp_path / "found/journal")
    assert rows(restored, gateway) == 3
    settings = {**environment, "SVC_DATA_DIR": str(tmp_path / "found"), "DATABASE_URL": restored}
    command, port, _ = launch(settings, tmp_path / "found.log")
    try:
        until(lambda: rows(restored, gateway) == 5)
        models = fetch(f"http://127.0.0.1:{port}/v1/models", key=gateway.key)
        assert models.status_code == 200, "the secrets open the keys of the backup"
    finally:
        command.stop()
    assert "rows: " in output_of(manage("verify_ledger", **settings))
