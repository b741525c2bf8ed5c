"""Changes of keys that run at once take their locks in one order: none ends in a deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.keys import keys
from accounts.keys.keys import NewKey
from accounts.models import ApiKey, Organization, Scope
from accounts.organizations import set_disabled
from core import clock
from tests.accounts.keys.test_key_changes import waits_for_a_lock
from tests.support.until import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

Change = Callable[[NewKey], object]


def disable(key: NewKey) -> None:
    chosen = Organization.objects.filter(pk=key.api_key.organization_id)
    set_disabled(chosen, disabled=True)


def postpone(key: NewKey) -> None:
    with transaction.atomic():
        keys.require_right_to_end(key.api_key, clock.now(), may_postpone=True)
        key.api_key.save(update_fields=["expires_at"])


CHANGES: dict[str, Change] = {
    "mint": lambda key: keys.mint(key.api_key.organization, Scope.READ),
    "revoke": lambda key: keys.revoke(key.api_key),
    "rotate": lambda key: keys.rotate(key.api_key),
    "change the end": postpone,
    "disable": disable,
}


def end_all(key: NewKey) -> None:
    """Change all rows in one statement, as plain SQL does."""
    ApiKey.objects.update(revoked_at=clock.now())


def save_organization(key: NewKey) -> None:
    key.api_key.organization.save()


@pytest.mark.parametrize("statement", [end_all, save_organization])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_and_a_statement_over_the_same_rows_both_succeed(
    change: str, statement: Change, organization: Organization
) -> None:
    """The statement begins when the change has its first row lock."""
    key = keys.mint(organization, Scope.READ)
    begun = _Other(lambda: statement(key))

    def start_statement(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "FOR UPDATE" in sql or "FOR NO KEY UPDATE" in sql:
            begun.start_and_wait_until_it_waits()
        return result

    with connection.execute_wrapper(start_statement):
        CHANGES[change](key)

    begun.join()


def test_a_bulk_revocation_and_that_of_one_of_its_keys_both_succeed(
    organization: Organization,
) -> None:
    first, second = (keys.mint(organization, Scope.READ) for _ in range(2))
    other = _Other(lambda: keys.revoke(second.api_key))

    with transaction.atomic():
        keys.revoke(first.api_key)
        other.start_and_wait_until_it_waits()
        keys.revoke(second.api_key)

    other.join()


def _waits() -> bool:
    with connection.cursor() as cursor:
        # A transaction keeps the list of connections that it saw first.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
    return waits_for_a_lock()


class _Other:
    """Work in another thread with a connection of its own; it is started once."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run)
        self._is_started = False

    def start_and_wait_until_it_waits(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._thread.start()
            until(lambda: _waits() or not self._thread.is_alive())

    def join(self) -> None:
        assert self._is_started
        self._thread.join(60)
        assert not self._errors

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._errors.append(error)
        finally:
            connection.close()
