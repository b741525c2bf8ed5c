"""Fixtures of the accounts tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.changes import ChangeWatcher
from accounts.keys.keyring import Keyring
from accounts.models import Organization


@pytest.fixture
def watcher() -> Iterator[ChangeWatcher]:
    """A watcher that does not poll until a test starts it or polls itself."""
    own = ChangeWatcher()
    yield own
    own.stop()


@pytest.fixture
def keyring(watcher: ChangeWatcher) -> Iterator[Keyring]:
    """An empty key ring."""
    own = Keyring(watcher)
    yield own
    own.close()


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.create(
        name="Acme", requests_per_minute=60, tokens_per_minute=None, speech_requests_per_minute=5
    )
