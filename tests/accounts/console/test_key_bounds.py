"""The bound on working keys of an organization, and the paged list of keys."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.console.keys import PAGE_KEYS
from accounts.keys import keys
from accounts.keys.keys import TooManyKeys, mint
from accounts.models import ApiKey, Organization, Scope, User
from core import clock
from tests.support.pages.console import words

FULL = "has 2 keys that work, the most that are allowed"


@pytest.fixture
def full(organization: Organization, settings: Settings) -> list[ApiKey]:
    """The keys of an organization that may have no further key."""
    settings.SVC_KEYS_PER_ORGANIZATION = 2
    return [mint(organization, Scope.READ, f"number {number}").api_key for number in range(2)]


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ops@svc.example", "correct horse battery"))
    return client


def test_a_key_too_many_is_not_made_and_the_form_says_what_to_do(
    console: Client, full: list[ApiKey]
) -> None:
    answer = console.post("/console/keys/new", {"scope": "read", "label": "one more"})

    said = words(answer.content.decode())
    assert f"Northwind {FULL}. Revoke one that is not in use" in said
    assert 'value="one more"' in answer.content.decode()
    assert ApiKey.objects.count() == 2


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
    assert FULL in words(kept.content.decode())
    assert "rotate one so that the old key ends now" in words(kept.content.decode())
    full[0].refresh_from_db()
    assert full[0].expires_at is None

    console.post(address, {"overlap": "0"})
    assert ApiKey.objects.count() == 3


def test_operators_see_the_bound_in_the_form_and_the_action(
    operator: Client, full: list[ApiKey], organization: Organization
) -> None:
    form = {"organization": str(organization.pk), "scope": "read", "label": "one more"}
    added = operator.post("/admin/accounts/apikey/add/", form)
    assert FULL in words(added.content.decode())

    chosen = {"action": "rotate", "_selected_action": [full[0].pk], "confirmed": "1"}
    rotated = operator.post("/admin/accounts/apikey/", {**chosen, "overlap": "3600"}, follow=True)
    assert FULL in words(rotated.content.decode())
    assert ApiKey.objects.count() == 2


def test_the_command_and_the_code_have_the_same_bound(
    full: list[ApiKey], organization: Organization
) -> None:
    with pytest.raises(CommandError, match=FULL):
        call_command("create_key", str(organization.pk), "--scope", "read")
    with pytest.raises(TooManyKeys, match=FULL):
        mint(organization, Scope.INFERENCE)


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
    console: Client, organization: Organization, settings: Settings
) -> None:
    settings.SVC_KEYS_PER_ORGANIZATION = 1000
    made = [mint(organization, Scope.READ).api_key for _ in range(2 * PAGE_KEYS + 2)]
    for api_key in made[: PAGE_KEYS + 1]:
        keys.revoke(api_key)

    def shown(query: str) -> set[str]:
        page = console.get(f"/console/keys{query}").content.decode()
        return set(re.findall(r"(svc_read_\w{6})…</code>", page))

    first, second = shown(""), shown("?page=2")
    assert len(first) == 2 * PAGE_KEYS
    assert len(second) == PAGE_KEYS + 1
    assert len(shown("?ended=2")) == PAGE_KEYS + 1
    assert first | second | shown("?ended=2") == {each.prefix for each in made}
    # A number beyond the last page shows the last one, and no number the first.
    assert shown("?page=99") == second
    assert shown("?page=x&ended=-") == first
    page = console.get("/console/keys?page=2&ended=2").content.decode()
    assert 'href="?page=1&amp;ended=2"' in page
    assert 'href="?page=2&amp;ended=1"' in page


def test_the_key_filter_of_the_pages_is_bounded(
    console: Client, organization: Organization, settings: Settings
) -> None:
    settings.SVC_KEYS_PER_ORGANIZATION = 1000
    oldest = mint(organization, Scope.INFERENCE, "the oldest").api_key
    ApiKey.objects.filter(pk=oldest.pk).update(created_at=clock.now() - timedelta(days=1))
    for _ in range(100):
        mint(organization, Scope.INFERENCE, "newer")

    page = console.get("/console/usage").content.decode()
    assert page.count(">newer") == 100
    assert "the oldest" not in page
    assert "the oldest" in console.get(f"/console/usage?api_key_id={oldest.pk}").content.decode()
