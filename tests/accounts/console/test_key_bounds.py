"""The bound on working keys of an organization, and the paged list of keys."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.keys import keys
from accounts.keys.keys import TooManyKeys, mint
from accounts.models import ApiKey, Organization, Scope
from core import clock
from tests.support.pages.console import words

FULL = "Northwind has 2 keys that work, the most that are allowed"
GATEWAY_FULL = "This gateway can have no more than 2 keys that work"


@pytest.fixture
def full(organization: Organization, settings: Settings) -> list[ApiKey]:
    """The keys of an organization that may have no further key."""
    settings.SVC_KEYS_PER_ORGANIZATION = 2
    return [mint(organization, Scope.READ, f"number {number}").api_key for number in range(2)]


@pytest.fixture
def gateway_full(stranger: Organization, monkeypatch: pytest.MonkeyPatch) -> list[ApiKey]:
    """The keys of another organization, as many as the gateway may have."""
    monkeypatch.setattr("accounts.keys.keys.MOST_WORKING_KEYS", 2)
    return [mint(stranger, Scope.READ).api_key for _ in range(2)]


@pytest.mark.parametrize(("bound", "said"), [("full", FULL), ("gateway_full", GATEWAY_FULL)])
def test_every_interface_refuses_a_key_beyond_a_bound(
    request: pytest.FixtureRequest,
    console: Client,
    operator: Client,
    organization: Organization,
    bound: str,
    said: str,
) -> None:
    held: list[ApiKey] = request.getfixturevalue(bound)
    form = {"organization": str(organization.pk), "scope": "read", "label": "one more"}

    made = console.post("/console/keys/new", form).content.decode()
    assert said in words(made)
    assert 'value="one more"' in made
    assert said in words(operator.post("/admin/accounts/apikey/add/", form).content.decode())
    chosen = {"action": "rotate", "_selected_action": [held[0].pk], "confirmed": "1"}
    rotated = operator.post("/admin/accounts/apikey/", {**chosen, "overlap": "3600"}, follow=True)
    assert said in words(rotated.content.decode())
    with pytest.raises(CommandError, match=said):
        call_command("create_key", str(organization.pk), "--scope", "read")
    with pytest.raises(TooManyKeys, match=said):
        mint(organization, Scope.INFERENCE)
    assert ApiKey.objects.count() == 2


def test_at_the_gateways_bound_a_rotation_that_ends_the_old_key_now_and_a_freed_place_are_used(
    organization: Organization, gateway_full: list[ApiKey]
) -> None:
    ended, revoked = gateway_full
    assert keys.rotate(ended)
    with pytest.raises(TooManyKeys, match=GATEWAY_FULL):
        keys.require_right_to_end(ended, None, may_postpone=True)
    keys.revoke(revoked)
    assert mint(organization, Scope.READ)


def test_keys_that_have_ended_and_keys_of_others_do_not_count(
    console: Client, full: list[ApiKey], stranger: Organization
) -> None:
    keys.revoke(full[0])
    ApiKey.objects.filter(pk=full[1].pk).update(expires_at=clock.now() - timedelta(seconds=1))
    for _ in range(2):
        mint(stranger, Scope.READ)

    for _ in range(2):
        console.post("/console/keys/new", {"scope": "read", "label": "new"})
    assert ApiKey.objects.filter(label="new").count() == 2


def test_at_the_bound_a_key_can_be_rotated_when_the_old_one_ends_at_once(
    console: Client, full: list[ApiKey]
) -> None:
    address = f"/console/keys/{full[0].pk}/rotate"

    kept = console.post(address, {"overlap": "3600"}, follow=True)
    assert f"{FULL}. Revoke one that is not in use" in words(kept.content.decode())
    assert "rotate one so that the old key ends now" in words(kept.content.decode())
    full[0].refresh_from_db()
    assert full[0].expires_at is None

    console.post(address, {"overlap": "0"})
    assert ApiKey.objects.count() == 3


def test_keys_made_and_ended_again_and_again_are_bounded(
    console: Client, organization: Organization, settings: Settings
) -> None:
    settings.SVC_NEW_KEYS_PER_DAY = 3
    old = mint(organization, Scope.READ, "of yesterday").api_key
    ApiKey.objects.update(created_at=clock.now() - timedelta(hours=25))
    for _ in range(3):
        console.post("/console/keys/new", {"scope": "read", "label": "new"})
        keys.revoke(ApiKey.objects.filter(label="new").latest("created_at"))

    refused = console.post("/console/keys/new", {"scope": "read", "label": "one more"})
    rotated = console.post(f"/console/keys/{old.pk}/rotate", {"overlap": "0"}, follow=True)

    said = "Northwind has made 3 keys in 24 hours, the most that are allowed. Try again later"
    assert said in words(refused.content.decode())
    assert said in words(rotated.content.decode())
    assert ApiKey.objects.count() == 4
    old.refresh_from_db()
    assert old.expires_at is None

    ApiKey.objects.update(created_at=clock.now() - timedelta(hours=25))
    console.post("/console/keys/new", {"scope": "read", "label": "of today"})
    assert ApiKey.objects.filter(label="of today").exists()


def test_the_list_has_pages_for_keys_that_work_and_for_keys_that_ended(
    console: Client, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.console.keys.PAGE_KEYS", 3)
    made = [mint(organization, Scope.READ).api_key for _ in range(8)]
    for api_key in made[:4]:
        keys.revoke(api_key)

    def shown(query: str) -> set[str]:
        page = console.get(f"/console/keys{query}").content.decode()
        return set(re.findall(r"(svc_read_\w{6})…</code>", page))

    first, second = shown(""), shown("?page=2")
    assert len(first) == 6
    assert len(second) == 4
    assert len(shown("?ended=2")) == 4
    assert first | second | shown("?ended=2") == {each.prefix for each in made}
    # A number beyond the last page shows the last one, and no number the first.
    assert shown("?page=99") == second
    assert shown("?page=x&ended=-") == first
    page = console.get("/console/keys?page=2&ended=2").content.decode()
    assert 'href="?page=1&amp;ended=2"' in page
    assert 'href="?page=2&amp;ended=1"' in page


def test_the_key_filter_of_the_pages_is_bounded(
    console: Client, organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("usage.console.key_names.MOST_CHOICES", 3)
    oldest = mint(organization, Scope.INFERENCE, "the oldest").api_key
    ApiKey.objects.filter(pk=oldest.pk).update(created_at=clock.now() - timedelta(days=1))
    for _ in range(3):
        mint(organization, Scope.INFERENCE, "newer")

    page = console.get("/console/usage").content.decode()
    assert page.count(">newer") == 3
    assert "the oldest" not in page
    assert "the oldest" in console.get(f"/console/usage?api_key_id={oldest.pk}").content.decode()
