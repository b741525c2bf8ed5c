"""A ledger that stops while its database does not answer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection, connections

from tests.support.builders.receipts import receipt
from tests.support.servers.tcp_proxy import FaultProxy
from usage.ledger import writer
from usage.ledger.ledger import Ledger

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

LONG = 240.0


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """A proxy for the database connections of other threads; a stop that waits for it takes long."""
    connection.ensure_connection()
    address = urlsplit(os.environ["DATABASE_URL"])
    place = connections.settings["default"]
    with (
        FaultProxy(address.port or 5432, address.hostname or "127.0.0.1") as proxy,
        monkeypatch.context() as patch,
    ):
        patch.setattr(writer, "_STOP_SECONDS", LONG)
        patch.setitem(place, "HOST", "127.0.0.1")
        patch.setitem(place, "PORT", proxy.port)
        patch.setitem(place["OPTIONS"], "connect_timeout", int(LONG))
        yield proxy
    connection.close()


def left_in(directory: Path) -> str:
    return "".join(path.read_text() for path in directory.iterdir())


@pytest.mark.parametrize("connected", [True, False], ids=["silent", "connecting"])
async def test_a_database_that_does_not_answer_does_not_delay_the_stop(
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
    await ledger.close()

    assert time.monotonic() - began < LONG / 2
    assert owed.request_id in left_in(journal_directory)
