"""A ledger that stops while its database says nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection, connections
from pytest_django.fixtures import Settings

from tests.faults.proxy import FaultProxy
from tests.usage.making import receipt
from usage import ledger_writer
from usage.ledger import Ledger

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

LONG = 60.0


@pytest.fixture
def journal_directory(settings: Settings, tmp_path: Path) -> Path:
    settings.SVC_DATA_DIR = tmp_path
    return tmp_path / "journal"


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """What connections of other threads than this one go through; a stop that waits in vain is long."""
    connection.ensure_connection()
    address = urlsplit(os.environ["DATABASE_URL"])
    place = connections.settings["default"]
    with (
        FaultProxy(address.port or 5432, address.hostname or "127.0.0.1") as proxy,
        monkeypatch.context() as patch,
    ):
        patch.setattr(ledger_writer, "_STOP_SECONDS", LONG)
        patch.setitem(place, "HOST", "127.0.0.1")
        patch.setitem(place, "PORT", proxy.port)
        patch.setitem(place["OPTIONS"], "connect_timeout", int(LONG))
        yield proxy
    connection.close()


def left_in(directory: Path) -> str:
    return "".join(path.read_text() for path in directory.iterdir())


@pytest.mark.parametrize("connected", [True, False], ids=["silent", "connecting"])
async def test_a_silent_database_does_not_hold_up_the_end(
    way: FaultProxy, journal_directory: Path, connected: bool
) -> None:
    ledger = Ledger()
    await ledger.start()
    await ledger.record(receipt())
    way.blackhole()
    if not connected:
        way.reset()
    accepted = way.accepted
    await ledger.record(owed := receipt())
    assert connected or way.accepted > accepted, "the ledger is not connecting anew"

    began = time.monotonic()
    await ledger.stop()

    assert time.monotonic() - began < LONG / 2
    assert owed.request_id in left_in(journal_directory)
