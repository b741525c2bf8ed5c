"""Databases of earlier releases, and the processes of those releases beside new ones."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.changes import ChangeWatcher
from accounts.keys import keys
from accounts.keys.keyring import Keyring
from accounts.models import ChangeStamp, Organization, Scope
from core import clock
from tests.accounts.keys.test_keyring import ALL

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = ["0005_profiles", "0007_admin_keys"]
"""Before versions of keys, and before their classes."""


def migrate(targets: Any = None) -> Any:
    """Migrate to ``targets``, or to the newest; return the models of then."""
    executor = MigrationExecutor(connection)
    return executor.migrate(targets or executor.loader.graph.leaf_nodes()).apps


@pytest.fixture(params=BEFORE)
def old(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Any]:
    """The models of the release before, in its database."""
    yield migrate([("accounts", request.param)])
    migrate()


def stored_by(apps: Any, secret: str, organization: Any) -> Any:
    """A key that a process of the release before stores."""
    row = apps.get_model("accounts", "ApiKey")(
        id=uuid.uuid4(), organization=organization, scope="read", prefix=secret[:15], pepper="x"
    )
    row.digest = keys.digest_of(secret, "pepper")
    row.save(force_insert=True)
    return row


def accepts(keyring: Keyring, watcher: ChangeWatcher, secret: str) -> bool:
    watcher.poll()
    record = keyring._keys.find(secret.encode())
    return record is not None and record.accepts(ALL)


def test_keys_work_after_an_upgrade_and_processes_of_both_releases_see_each_others_changes(
    old: Any, keyring: Keyring, watcher: ChangeWatcher, settings: Any
) -> None:
    settings.SVC_KEY_PEPPERS = ["pepper"]
    acme = old.get_model("accounts", "Organization").objects.create(name="Acme")
    stored_by(old, "kept", acme)
    revoked = stored_by(old, "revoked", acme)
    old.get_model("accounts", "ChangeStamp").objects.update_or_create(
        subject="keys", defaults={"version": 40}
    )

    migrate()

    assert accepts(keyring, watcher, "kept")
    assert accepts(keyring, watcher, "revoked")
    # What a process of the release before writes, which knows no new column.
    revoked.revoked_at = clock.now()
    revoked.save()
    assert not accepts(keyring, watcher, "revoked")
    stored_by(old, "made", acme)
    assert accepts(keyring, watcher, "made")
    Organization.objects.update(priority="batch")
    acme.disabled_at = clock.now()
    acme.save()
    assert Organization.objects.get().priority == "batch"
    assert not accepts(keyring, watcher, "kept")
    # What it reads to notice a change of a new process.
    seen = ChangeStamp.objects.get(subject="keys").version
    keys.mint(Organization.objects.get(), Scope.READ)
    assert ChangeStamp.objects.get(subject="keys").version > seen > 40
