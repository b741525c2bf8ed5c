"""What an organization and a user are called, and that a change reaches them under a new name too."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.api import organizations as organizations_api
from accounts.api import users as users_api
from accounts.keys import admin_keys, keys
from accounts.models import ApiKey, Organization, Scope, User

pytestmark = pytest.mark.django_db
AN_ID = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("name", ["a\nb", " a", "a\u202eb", "Acm\u200be", "Acme\u200e", AN_ID])
def test_an_organization_is_renamed_to_nothing_that_misleads(name: str) -> None:
    row = Organization.objects.create(name="Acme")
    row.name = name
    with pytest.raises(ValidationError, match="name"):
        row.full_clean()

    older = Organization.objects.create(name=name)
    older.plan = "enterprise"
    older.full_clean()


@pytest.mark.parametrize("name", ["शक्‍ति", "می‌خواهم", "Zoë 👩‍🚀"])
def test_characters_with_which_languages_are_written_stay_in_names(name: str) -> None:
    Organization(name=name).full_clean()


@pytest.mark.parametrize(
    ("label", "rotated"),
    [("a\nb", "ab"), ("a\u202eb", "ab"), ("a\u2066b", "ab"), ("a\ufeffb", "ab"), (" a", "a")],
)
def test_a_key_gets_no_label_that_misleads_in_the_audit_log(
    ask: Any, label: str, rotated: str
) -> None:
    row = Organization.objects.create(name="Acme")
    for make in (lambda: keys.mint(row, Scope.SPEECH, label), lambda: admin_keys.mint(label)):
        with pytest.raises(ValidationError, match="Leave out control and invisible characters"):
            make()
    refused = ask("POST", "keys", {"organization": "Acme", "scope": "speech", "label": label})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "label")

    older = keys.mint(row, Scope.SPEECH, "ab").api_key
    ApiKey.objects.update(label=label)
    older.refresh_from_db()
    keys.change(older, {"requests_per_minute": 5})
    assert keys.rotate(older).api_key.label == rotated


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_what_is_renamed_after_it_was_found_is_changed_and_none_is_made(
    ask: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    organization = Organization.objects.create(name="Acme")
    user = User.objects.create_user("ann@acme.example")
    find_organization, find_user = organizations_api.find_organization, users_api.find_user

    def organization_then_renamed(named: str) -> Organization:
        found = find_organization(named)
        Organization.objects.filter(pk=found.pk).update(name="Acme Group")
        return found

    def user_then_renamed(named: str) -> User:
        found = find_user(named)
        User.objects.filter(pk=found.pk).update(email="ann@group.example")
        return found

    monkeypatch.setattr(organizations_api, "find_organization", organization_then_renamed)
    monkeypatch.setattr(users_api, "find_user", user_then_renamed)

    changed = ask(method, "organizations/Acme", {"disabled": True})
    disabled = ask(method, "users/ann@acme.example", {"active": False})

    shown = changed.json()
    assert (changed.status_code, shown["name"], shown["status"]) == (200, "Acme Group", "disabled")
    assert shown["organization_id"] == str(organization.pk)
    assert (disabled.status_code, disabled.json()["user_id"]) == (200, str(user.pk))
    assert (Organization.objects.count(), User.objects.count()) == (1, 1)
