"""How changes of keys reach the processes that hold them: in any way of writing, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import Model

from accounts.changes import ChangeWatcher
from accounts.keys import keys
from accounts.keys.keyring import Keyring
from accounts.keys.keys import NewKey
from accounts.models import ApiKey, ChangeStamp, Organization, Scope
from core import clock
from tests.accounts.keys.test_keyring import ALL
from tests.support.key_stamp import stamp
from tests.support.until import until

NOT_ANNOUNCED = {
    ApiKey: {"id", "label", "prefix", "pepper", "created_at", "last_used_at", "version"},
    Organization: {"id", "name", "created_at", "version"},
}
"""Columns that no request with a key reads."""


def sql(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


@contextmanager
def without_triggers() -> Iterator[None]:
    """Disable the triggers of keys, as a restore of a backup does."""
    if connection.vendor == "postgresql":
        sql("SET LOCAL session_replication_role = replica")
        yield
        sql("SET LOCAL session_replication_role = DEFAULT")
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master"
            " WHERE type = 'trigger' AND tbl_name = 'accounts_apikey'"
        )
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, statement in triggers:
            cursor.execute(statement)


def stored(key: NewKey) -> Any:
    """The id of ``key`` in the database's own form."""
    return key.api_key.pk if connection.vendor == "postgresql" else key.api_key.pk.hex


@pytest.fixture
def works(keyring: Keyring, watcher: ChangeWatcher) -> Callable[[NewKey], bool]:
    """Tell whether a key is accepted from memory, after a look at the stamp."""

    def works(key: NewKey) -> bool:
        watcher.poll()
        record = keyring._keys.find(key.secret.encode())
        return record is not None and record.accepts(ALL)

    return works


Works = Callable[[NewKey], bool]


@pytest.fixture
def pair(organization: Organization) -> tuple[NewKey, NewKey]:
    return keys.mint(organization, Scope.READ), keys.mint(organization, Scope.READ)


def test_keys_that_are_made_changed_and_deleted_in_bulk_are_noticed(
    works: Works, pair: tuple[NewKey, NewKey], organization: Organization
) -> None:
    assert works(pair[0])
    rows = list(ApiKey.objects.all())
    ApiKey.objects.all()._raw_delete(ApiKey.objects.db)
    assert not works(pair[0])
    ApiKey.objects.bulk_create(rows)
    assert works(pair[0])
    ApiKey.objects.filter(organization=organization).update(expires_at=clock.now())
    assert not works(pair[0])
    ApiKey.objects.bulk_update([ApiKey(pk=row.pk, expires_at=None) for row in rows], ["expires_at"])
    assert works(pair[0])
    assert works(pair[1])


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
@pytest.mark.parametrize("tables", ["accounts_apikey", "accounts_apikey, accounts_changestamp"])
def test_truncated_keys_are_refused(works: Works, pair: tuple[NewKey, NewKey], tables: str) -> None:
    assert works(pair[0])
    sql(f"TRUNCATE {tables} CASCADE")
    assert not works(pair[0])


@pytest.mark.parametrize("column", ["digest", "id"])
def test_a_key_with_another_digest_or_id_is_another_key(
    works: Works, pair: tuple[NewKey, NewKey], column: str
) -> None:
    key = pair[0]
    assert works(key)
    other = keys.digest_of("another", "pepper")
    value = other if column == "digest" else other[:32]
    sql(f"UPDATE accounts_apikey SET {column} = %s WHERE id = %s", value, stored(key))
    assert works(key) is (column == "id")
    assert works(pair[1])


def _changed(field: Any) -> Any:
    return {
        "scope": "speech",
        "digest": "0" * 64,
        "plan": "enterprise",
        "captures_allowed": False,
        "priority": "batch",
        "organization": None,
    }.get(field.name, clock.now() if field.get_internal_type() == "DateTimeField" else 7)


@pytest.mark.parametrize("model", [ApiKey, Organization])
def test_every_column_that_a_request_reads_is_announced_and_no_other(
    model: type[Model], pair: tuple[NewKey, NewKey]
) -> None:
    other = Organization.objects.create(name="Other")
    row = model._default_manager.get(
        pk=(pair[0].api_key if model is ApiKey else pair[0].api_key.organization).pk
    )
    for field in model._meta.concrete_fields:
        if field.primary_key or field.name == "version":
            continue
        value = other if field.name == "organization" else _changed(field)
        if field.name in {"name", "label", "prefix", "pepper"}:
            value = "x"
        before = stamp()
        model._default_manager.filter(pk=row.pk).update(**{field.name: value})
        assert (version_of(row) > before) is (field.name not in NOT_ANNOUNCED[model]), field.name


def version_of(row: Model) -> int:
    version: int = type(row)._default_manager.values_list("version", flat=True).get(pk=row.pk)
    return version


def test_a_stale_copy_that_is_saved_does_not_hide_a_later_change(
    works: Works, pair: tuple[NewKey, NewKey]
) -> None:
    stale = ApiKey.objects.get(pk=pair[0].api_key.pk)
    for _ in range(3):
        ApiKey.objects.filter(pk=stale.pk).update(tokens_per_minute=clock.now().microsecond)
    assert works(pair[0])
    stale.revoked_at = clock.now()
    stale.save()
    assert not works(pair[0])
    ApiKey.objects.filter(pk=stale.pk).update(version=1, revoked_at=None)
    assert works(pair[0])


@pytest.mark.parametrize("stamps", ["older", "none"])
def test_a_database_that_was_restored_is_read_as_a_whole(
    works: Works, pair: tuple[NewKey, NewKey], stamps: str
) -> None:
    """The backup knows nothing of the second key, and holds the first as it was before."""
    first, second = pair
    ApiKey.objects.filter(pk=first.api_key.pk).update(revoked_at=clock.now())
    assert not works(first)
    assert works(second)
    with without_triggers():
        ApiKey.objects.filter(pk=first.api_key.pk).update(revoked_at=None)
        ApiKey.objects.filter(pk=second.api_key.pk).delete()
    if stamps == "older":
        ChangeStamp.objects.update(version=1)
    else:
        ChangeStamp.objects.all().delete()
    assert works(first)
    assert not works(second)
    # Versions of rows are above the stamp now, and a change is still noticed.
    keys.revoke(first.api_key)
    assert not works(first)


def test_after_a_failure_everything_is_read(
    works: Works,
    watcher: ChangeWatcher,
    pair: tuple[NewKey, NewKey],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another database may answer: one that took over, with the stamp grown further by now."""
    assert works(pair[0])
    with without_triggers():
        ApiKey.objects.filter(pk=pair[0].api_key.pk).update(revoked_at=clock.now())
    ChangeStamp.objects.update(version=stamp() + 5)
    assert works(pair[0]), "no version shows it"
    with monkeypatch.context() as broken:
        broken.setattr("accounts.changes.ChangeStamp.objects.values_list", _away)
        with pytest.raises(OperationalError):
            watcher.poll()
    assert not works(pair[0])


def test_a_change_while_triggers_were_disabled_is_found_later(
    works: Works, pair: tuple[NewKey, NewKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert works(pair[0])
    with without_triggers():
        ApiKey.objects.filter(pk=pair[0].api_key.pk).update(revoked_at=clock.now())
    monkeypatch.setattr("accounts.changes._RELOAD_SECONDS", 0.0)
    assert not works(pair[0])


def _away(*_: Any, **__: Any) -> None:
    raise OperationalError


NO_TIME = "infinity" if connection.vendor == "postgresql" else "2026-13-45 00:00:00"
"""A moment that the database keeps and Python cannot read."""


@pytest.mark.parametrize("loads", ["all keys", "changes"])
@pytest.mark.parametrize(
    ("column", "value"), [("digest", "no digest"), ("expires_at", NO_TIME)], ids=lambda each: each
)
def test_a_damaged_row_costs_no_other_key(
    works: Works,
    watcher: ChangeWatcher,
    organization: Organization,
    pair: tuple[NewKey, NewKey],
    column: str,
    value: str,
    loads: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if loads == "changes":
        assert works(pair[0])
    sql(f"UPDATE accounts_apikey SET {column} = %s WHERE id = %s", value, stored(pair[0]))
    later = keys.mint(organization, Scope.READ)
    assert works(pair[1])
    assert works(later)
    assert not works(pair[0])
    assert f"key {pair[0].api_key.pk} is damaged" in caplog.text

    keys.revoke(pair[1].api_key)
    assert not works(pair[1])


def test_an_expired_key_works_again_when_the_clock_is_set_back(
    works: Works, pair: tuple[NewKey, NewKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    until = clock.now() + timedelta(minutes=10)
    ApiKey.objects.filter(pk=pair[0].api_key.pk).update(expires_at=until)
    ahead = until + timedelta(minutes=30)
    with monkeypatch.context() as fast:
        fast.setattr("core.clock.now", lambda: ahead)
        fast.setattr("time.time", ahead.timestamp)
        assert not works(pair[0])
    assert works(pair[0])


@pytest.mark.django_db(transaction=True)
def test_a_change_that_commits_late_is_seen_by_who_saw_an_earlier_stamp(
    works: Works, keyring: Keyring, pair: tuple[NewKey, NewKey]
) -> None:
    """Of two open transactions the second gets its version when the first has committed.

    On SQLite the second cannot begin before.
    """
    first, second = pair
    assert works(first)
    begun = threading.Event()

    def revoke_second() -> None:
        try:
            with transaction.atomic():
                begun.set()
                keys.revoke(second.api_key)
        finally:
            connection.close()

    other = threading.Thread(target=revoke_second)
    with transaction.atomic():
        keys.revoke(first.api_key)
        other.start()
        if connection.vendor == "postgresql":
            assert begun.wait(60)
            until(waits_for_a_lock)
        assert ApiKey.objects.get(pk=second.api_key.pk).revoked_at is None
    other.join(60)
    versions = [version_of(each.api_key) for each in pair]
    assert versions == sorted(set(versions))
    assert not works(first)
    assert not works(second)
    assert stamp() == versions[1]


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
