"""The bound on admin keys holds when several are made at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from accounts.keys import admin_keys
from accounts.models import AdminKey

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def test_of_keys_that_are_made_at_once_only_as_many_as_may_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin_keys, "MOST_KEYS", 3)
    together = threading.Barrier(8)

    def make(number: int) -> bool:
        together.wait(timeout=30)
        try:
            admin_keys.mint(f"pipeline {number}")
        except ValidationError:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(make, range(8)))
    assert sum(made) == 3
    assert AdminKey.objects.count() == 3
