"""A key revoked in one process is refused in another one within a second."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection

from accounts.changes import CATALOG, lock
from accounts.keys import keys
from accounts.keys.keyring import keyring
from accounts.models import Organization, Scope
from core.database.threads import run_once
from core.errors import InvalidCredential
from inference.catalog.catalog import catalog
from svc_project.serving import caches

SECOND_PROCESS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "svc_project.settings"
import django
django.setup()
from accounts.changes import KEYS, key_watcher
from accounts.keys.keyring import keyring
from accounts.models import Scope
from core.errors import InvalidCredential
from tests.support.until import until

key_watcher.start()
header = "Bearer " + sys.stdin.readline().strip()

def is_admitted():
    try:
        return bool(keyring.authenticate_sync(header, frozenset(Scope)))
    except InvalidCredential:
        return False

until(lambda: is_admitted() and key_watcher.is_fresh(KEYS, 1.0))
print("admitted", flush=True)
until(lambda: not is_admitted())
print("refused", flush=True)
keyring.close()
key_watcher.stop()
"""


def database_url() -> str:
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{config['NAME']}"
    login = f"{config['USER']}:{config['PASSWORD']}".rstrip(":")
    return f"postgres://{login}@{config['HOST']}:{config['PORT']}/{config['NAME']}"


@pytest.fixture
def second_process(transactional_db: None) -> Iterator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "SVC_KEY_PEPPERS": ",".join(settings.SVC_KEY_PEPPERS),
    }
    with subprocess.Popen(
        [sys.executable, "-c", SECOND_PROCESS],
        cwd=settings.BASE_DIR,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_a_key_revoked_here_is_refused_by_another_process(
    second_process: subprocess.Popen[str], organization: Organization
) -> None:
    new = keys.mint(organization, Scope.INFERENCE)
    assert second_process.stdin is not None
    assert second_process.stdout is not None
    second_process.stdin.write(new.secret + "\n")
    second_process.stdin.flush()
    assert second_process.stdout.readline() == "admitted\n"
    keys.revoke(new.api_key)
    assert second_process.stdout.readline() == "refused\n"


@pytest.mark.django_db(transaction=True)
async def test_a_revocation_does_not_wait_for_a_catalog_that_cannot_be_read(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration holds a lock on one of the catalog's tables, for example."""
    new = await run_once(lambda: keys.mint(organization, Scope.INFERENCE))
    for watcher in (keyring._watcher, catalog._watcher):
        # Another test's stamps may be the same; and what this one loads counts for no later test.
        monkeypatch.setattr(watcher, "_loaded", {})
        monkeypatch.setattr(watcher, "_confirmed", {})
    is_read, unlocked = threading.Event(), threading.Event()

    def read() -> object:
        is_read.set()
        assert unlocked.wait(60)
        return catalog.snapshot

    await caches.start()
    try:
        assert await keyring.authenticate(f"Bearer {new.secret}", frozenset(Scope))
        monkeypatch.setattr(catalog, "read", read)
        await run_once(lambda: lock(CATALOG))
        assert await asyncio.to_thread(is_read.wait, 60)

        await run_once(lambda: keys.revoke(new.api_key))

        await asyncio.wait_for(asyncio.wrap_future(keyring._watcher.look()), 60)
        with pytest.raises(InvalidCredential):
            await keyring.authenticate(f"Bearer {new.secret}", frozenset(Scope))
    finally:
        unlocked.set()
        await caches.close()
