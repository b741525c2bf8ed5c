"""Every interface refuses a key beyond the bound on working keys of all organizations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.keys import keys
from accounts.keys.forms import one_time_token
from accounts.models import ApiKey, Membership, Organization, Scope, User
from core import clock

REFUSED = "This gateway can have no more than 2 keys that work"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def full(organization: Organization, monkeypatch: pytest.MonkeyPatch) -> list[ApiKey]:
    """A gateway with as many keys as it may have, all of another organization."""
    monkeypatch.setattr("accounts.keys.keys.MOST_WORKING_KEYS", 2)
    other = Organization.objects.create(name="Other")
    return [keys.mint(other, Scope.READ).api_key for _ in range(2)]


def test_no_key_is_made(organization: Organization) -> None:
    with pytest.raises(keys.TooManyKeys, match=REFUSED):
        keys.mint(organization, Scope.READ)
    with pytest.raises(CommandError, match=REFUSED):
        call_command("create_key", "Acme", scope="read")


def test_the_console_says_so(organization: Organization) -> None:
    user = User.objects.create_user("ann@example.com", "correct horse battery")
    Membership.objects.create(user=user, organization=organization)
    client = Client()
    client.force_login(user)
    form = {"scope": "read", "label": "one more", "one_time": one_time_token(str(organization.pk))}
    assert REFUSED in client.post("/console/keys/new", form).content.decode()


def test_the_admin_says_so(organization: Organization) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("operator@example.com", "correct horse"))
    form = {"organization": str(organization.pk), "scope": "read", "label": "one more"}
    assert REFUSED in client.post("/admin/accounts/apikey/add/", form).content.decode()


def test_a_rotation_that_ends_the_old_key_now_and_a_place_that_came_free_are_used(
    organization: Organization, full: list[ApiKey]
) -> None:
    with pytest.raises(keys.TooManyKeys, match=REFUSED):
        keys.rotate(full[0], clock.now() + timedelta(hours=1))
    assert keys.rotate(full[0])
    keys.revoke(full[1])
    assert keys.mint(organization, Scope.READ)


def test_an_ended_key_does_not_work_again_beyond_the_bound(full: list[ApiKey]) -> None:
    keys.rotate(full[0])
    full[0].refresh_from_db()
    with pytest.raises(keys.TooManyKeys, match=REFUSED):
        keys.require_right_to_end(full[0], None, may_postpone=True)
