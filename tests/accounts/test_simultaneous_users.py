"""Of several requests that make the same user at once, one makes it and the others change it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from accounts import users
from accounts.models import Organization, User


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_a_user_that_is_made_16_times_at_once_is_made_once_and_never_refused() -> None:
    organization = Organization.objects.create(name="Acme")
    together = threading.Barrier(16)

    def make(_: int) -> bool:
        try:
            together.wait(timeout=30)
            return users.change("ada@acme.example", organizations=[organization])[1]
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(make, range(16))) == 1
    assert [user.email for user in organization.users.all()] == ["ada@acme.example"]


@pytest.mark.django_db
def test_an_address_that_was_stored_in_capitals_is_refused() -> None:
    User.objects.bulk_create([User(email="Ada@acme.example")])

    with pytest.raises(ValidationError, match="Another user has this address"):
        users.change("ada@acme.example")
