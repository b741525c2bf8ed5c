"""The end of a key's validity in the admin: brought forward with one right, postponed with two."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.keys import keys
from accounts.keys.keys import KeyStatus
from accounts.models import ApiKey, Organization, Scope
from core import clock
from tests.support.pages.admin_forms import filled_in, logged_in, moment, operator, text_of

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
CHANGES = ("accounts.change_apikey",)
ADDS = ("accounts.change_apikey", "accounts.add_apikey")
NEEDS_A_RIGHT = "may only end earlier: a later end needs the right to add keys"


def key(organization: Organization, ends_in: timedelta | None) -> ApiKey:
    api_key = keys.mint(organization, Scope.READ).api_key
    until = None if ends_in is None else clock.now() + ends_in
    ApiKey.objects.filter(pk=api_key.pk).update(expires_at=until)
    api_key.refresh_from_db()
    return api_key


def save(client: Client, api_key: ApiKey, until: datetime | None, **changes: Any) -> Any:
    address = f"/admin/accounts/apikey/{api_key.pk}/change/"
    form = filled_in(client, address)
    form.pop("expires_at", None)
    return client.post(address, {**form, **moment("expires_at", until), **changes})


@pytest.mark.parametrize("ends_in", [-HOUR, HOUR])
@pytest.mark.parametrize("later", [2 * HOUR, None])
def test_who_may_only_change_keys_postpones_no_end(
    organization: Organization, ends_in: timedelta, later: timedelta | None
) -> None:
    api_key = key(organization, ends_in)
    until = None if later is None else clock.now() + later

    answer = save(logged_in(operator(*CHANGES)), api_key, until)

    assert answer.status_code == 200
    assert NEEDS_A_RIGHT in text_of(answer)
    was = api_key.expires_at
    api_key.refresh_from_db()
    assert api_key.expires_at == was


@pytest.mark.parametrize("ends_in", [None, 2 * HOUR])
def test_who_may_change_keys_brings_an_end_forward(
    organization: Organization, ends_in: timedelta | None
) -> None:
    api_key = key(organization, ends_in)
    until = clock.now() + HOUR

    assert save(logged_in(operator(*CHANGES)), api_key, until).status_code == 302

    api_key.refresh_from_db()
    assert api_key.expires_at == until.replace(microsecond=0)


def test_the_rest_of_an_ended_key_can_be_changed(organization: Organization) -> None:
    api_key = key(organization, -HOUR)
    was = api_key.expires_at

    answer = save(logged_in(operator(*CHANGES)), api_key, was, label="the old one")

    assert answer.status_code == 302
    api_key.refresh_from_db()
    assert (api_key.label, api_key.expires_at) == ("the old one", was)


def test_who_may_add_keys_postpones_an_end_within_the_bound(
    organization: Organization, settings: Settings
) -> None:
    settings.SVC_KEYS_PER_ORGANIZATION = 2
    ended, ending, _ = key(organization, -HOUR), key(organization, HOUR), key(organization, None)
    client = logged_in(operator(*ADDS))

    refused = save(client, ended, None)
    assert "has 2 keys that work, the most that are allowed" in text_of(refused)
    ended.refresh_from_db()
    assert keys.status(ended) is KeyStatus.EXPIRED

    assert save(client, ending, None).status_code == 302, "it counts already"
    ending.refresh_from_db()
    assert keys.status(ending) is KeyStatus.ACTIVE

    keys.revoke(ending)
    assert save(client, ended, clock.now() + HOUR).status_code == 302
    ended.refresh_from_db()
    assert keys.status(ended) is KeyStatus.EXPIRING


def test_a_revoked_key_is_not_given_a_later_end(organization: Organization) -> None:
    api_key = key(organization, HOUR)
    keys.revoke(api_key)

    answer = save(logged_in(operator(*ADDS)), api_key, None)

    assert "This key is revoked. Create a new key." in text_of(answer)
    api_key.refresh_from_db()
    assert keys.status(api_key) is KeyStatus.REVOKED
    assert api_key.expires_at is not None


def test_a_key_revoked_or_rotated_while_a_form_is_saved_stays_so(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another operator did after the form's row was read is not written over."""
    revoked, rotated = key(organization, None), key(organization, None)
    client = logged_in(operator(*ADDS))
    full_clean = ApiKey.full_clean

    def meanwhile(self: ApiKey, *args: Any, **options: Any) -> None:
        monkeypatch.setattr(ApiKey, "full_clean", full_clean)
        full_clean(self, *args, **options)
        if self.pk == revoked.pk:
            keys.revoke(ApiKey.objects.get(pk=self.pk))
        else:
            keys.rotate(ApiKey.objects.get(pk=self.pk), clock.now() + HOUR)

    for api_key in (revoked, rotated):
        monkeypatch.setattr(ApiKey, "full_clean", meanwhile)
        assert save(client, api_key, None, label="renamed").status_code == 302
        api_key.refresh_from_db()
        assert api_key.label == "renamed"

    assert keys.status(revoked) is KeyStatus.REVOKED
    assert keys.status(rotated) is KeyStatus.EXPIRING
