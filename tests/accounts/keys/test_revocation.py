"""A key revoked in one process is refused in another one within a second."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection

from accounts.keys import keys
from accounts.models import Organization, Scope

SECOND_PROCESS = """
import os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "svc_project.settings"
import django
django.setup()
from accounts.changes import watcher
from accounts.keys.keyring import keyring
from accounts.models import Scope
from svc_project.lib.errors import InvalidCredential

watcher.start()
header = "Bearer " + sys.stdin.readline().strip()
deadline = time.monotonic() + 30
admitted = False
while time.monotonic() < deadline:
    try:
        keyring.authenticate_sync(header, frozenset(Scope))
    except InvalidCredential:
        print("refused", time.time(), flush=True)
        break
    if not admitted and watcher.is_fresh(1.0):
        admitted = True
        print("admitted", flush=True)
    time.sleep(0.005)
keyring.close()
watcher.stop()
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
        # So long that only the watcher can invalidate the key.
        "SVC_KEY_CACHE_SECONDS": "1000",
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


def test_a_key_revoked_here_is_refused_by_another_process_within_a_second(
    second_process: subprocess.Popen[str], organization: Organization
) -> None:
    new = keys.mint(organization, Scope.INFERENCE)
    assert second_process.stdin is not None
    assert second_process.stdout is not None
    second_process.stdin.write(new.secret + "\n")
    second_process.stdin.flush()
    assert second_process.stdout.readline() == "admitted\n"
    keys.revoke(new.api_key)
    revoked = time.time()
    word, moment = second_process.stdout.readline().split()
    assert word == "refused"
    assert float(moment) - revoked < 1.0
