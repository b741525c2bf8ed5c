"""Fixtures of the accounts tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections

from accounts.changes import ChangeWatcher
from accounts.keyring import Keyring
from accounts.keyring import keyring as process_keyring
from accounts.models import Organization


@pytest.fixture(scope="module", autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Ends the threads once no test's transaction is open, which they could wait for."""
    yield
    process_keyring.close()


@pytest.fixture
def watcher() -> Iterator[ChangeWatcher]:
    """A watcher that does not poll until a test starts it or polls itself."""
    own = ChangeWatcher()
    yield own
    own.stop()


@pytest.fixture
def keyring(watcher: ChangeWatcher) -> Iterator[Keyring]:
    """A key ring that holds nothing yet."""
    own = Keyring(watcher)
    yield own
    own.close()


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.create(
        name="Acme", requests_per_minute=60, tokens_per_minute=None, speech_requests_per_minute=5
    )


@contextmanager
def database_outage() -> Iterator[None]:
    """Point every new connection at a place where no database is: connecting really fails.

    Connections that are open already are the test's to close.
    """
    config = connections.settings["default"]
    kept = {name: config[name] for name in ("NAME", "HOST", "PORT")}
    if connection.vendor == "sqlite":
        config["NAME"] = "/nonexistent/directory/svc.sqlite3"
    else:
        config.update(HOST="127.0.0.1", PORT="1")
    try:
        yield
    finally:
        config.update(kept)
