"""The operators' pages: they render, show a secret once, and never a digest."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.keys import keys
from accounts.keys.keys import KeyLimits, KeyStatus
from accounts.models import ApiKey, AuditEntry, Organization, Scope, User
from core import clock
from core.admin.columns import NOTHING
from tests.support.builders import catalog_rows
from tests.support.key_stamp import stamp
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.console import PASSWORD, member, page_at, words

pytestmark = pytest.mark.django_db

KEYS = "/admin/accounts/apikey/"
ORGANIZATIONS = "/admin/accounts/organization/"
USERS = "/admin/accounts/user/"
SECRET = re.compile(r'class="secret">([^<]+)</code>')
NO_MEMBERS = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}


def act(client: Client, page: str, action: str, *chosen: Any, **fields: Any) -> Any:
    return client.post(
        page, {"action": action, "_selected_action": [row.pk for row in chosen], **fields}
    )


def test_pages_render_that_no_other_test_opens(
    operator: Client, organization: Organization
) -> None:
    keys.mint(organization, Scope.READ, "laptop")
    user = member(organization)
    for page in (
        f"{KEYS}?q=laptop",
        *(f"{KEYS}?status={status}" for status in KeyStatus),
        f"{ORGANIZATIONS}add/",
        f"{ORGANIZATIONS}?q=acme",
        f"{USERS}add/",
        f"{USERS}{user.pk}/change/",
        f"{USERS}?q=ada",
    ):
        assert operator.get(page).status_code == 200, page


def test_the_admin_is_closed_to_members_who_are_no_operators(organization: Organization) -> None:
    client = logged_in(User.objects.create_user("ann@example.com", PASSWORD))
    assert client.get(KEYS).status_code == 302


def test_adding_a_key_shows_its_secret_once_on_a_page_that_is_not_stored(
    operator: Client, organization: Organization
) -> None:
    answer = operator.post(
        f"{KEYS}add/",
        {"organization": str(organization.pk), "scope": "speech", "label": "robot",
         "requests_per_minute": "5", "priority": "batch", "expires_at_0": "", "expires_at_1": ""},
    )  # fmt: skip
    [secret] = SECRET.findall(answer.content.decode())
    api_key = ApiKey.objects.get()
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert keys.well_formed(secret) is Scope.SPEECH
    assert secret.startswith(api_key.prefix)
    assert (api_key.label, api_key.requests_per_minute, api_key.priority) == ("robot", 5, "batch")
    assert secret not in repr(answer.cookies)
    assert not any(secret in repr(row.__dict__) for row in AuditEntry.objects.all())


def test_a_chosen_secret_cannot_be_set(operator: Client, organization: Organization) -> None:
    chosen = {"digest": "0" * 64, "prefix": "sk_chosen", "pepper": "chosen"}
    operator.post(f"{KEYS}add/", {"organization": str(organization.pk), "scope": "read", **chosen})
    api_key = ApiKey.objects.get()
    for name, value in chosen.items():
        assert getattr(api_key, name) != value


def test_changing_a_key_changes_its_label_and_limits_but_never_whose_it_is(
    operator: Client, organization: Organization
) -> None:
    own = KeyLimits(priority="interactive")
    api_key = keys.mint(organization, Scope.READ, limits=own).api_key
    listed = words(operator.get(KEYS).content.decode())
    assert f"{organization} {NOTHING} Read usage interactive active" in listed
    other = Organization.objects.create(name="Other")
    answer = operator.post(
        f"{KEYS}{api_key.pk}/change/",
        {"label": "renamed", "tokens_per_minute": "9", "organization": str(other.pk),
         "scope": "inference", "priority": ""},
    )  # fmt: skip
    assert answer.status_code == 302
    changed = ApiKey.objects.get()
    assert (changed.label, changed.tokens_per_minute) == ("renamed", 9)
    assert changed.priority is None, "it has the organization's class again"
    listed = words(operator.get(KEYS).content.decode())
    assert "Read usage standard (organization) active" in listed
    assert (changed.organization, changed.scope) == (organization, "read")
    assert changed.digest == api_key.digest


def test_revoking_asks_first_and_is_logged(operator: Client, organization: Organization) -> None:
    api_key = keys.mint(organization, Scope.READ).api_key
    question = act(operator, KEYS, "revoke", api_key)
    assert api_key.prefix in question.content.decode()
    assert keys.status(ApiKey.objects.get()) is KeyStatus.ACTIVE
    assert act(operator, KEYS, "revoke", api_key, confirmed="yes").status_code == 302
    assert keys.status(ApiKey.objects.get()) is KeyStatus.REVOKED
    history = words(operator.get(f"{KEYS}{api_key.pk}/history/").content.decode())
    assert "op@example.com (Admin) revoked" in history
    assert not LogEntry.objects.exists()


def test_rotating_asks_for_the_overlap_and_shows_the_new_secret(
    operator: Client, organization: Organization
) -> None:
    old = keys.mint(organization, Scope.READ, "laptop", limits=KeyLimits(1, 2)).api_key
    question = act(operator, KEYS, "rotate", old)
    assert "works for one more day" in question.content.decode()
    assert ApiKey.objects.count() == 1
    answer = act(operator, KEYS, "rotate", old, confirmed="yes", overlap="86400")
    [secret] = SECRET.findall(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    new = ApiKey.objects.exclude(pk=old.pk).get()
    assert secret.startswith(new.prefix)
    assert (new.label, new.requests_per_minute, new.tokens_per_minute) == ("laptop", 1, 2)
    old.refresh_from_db()
    assert old.expires_at is not None
    assert abs(old.expires_at - clock.now() - timedelta(days=1)) < timedelta(minutes=1)
    again = act(operator, KEYS, "rotate", old, confirmed="yes", overlap="0")
    assert again.status_code == 302, "a key whose end is set is not rotated"
    assert ApiKey.objects.count() == 2


def test_keys_organizations_and_users_cannot_be_deleted(
    operator: Client, organization: Organization
) -> None:
    api_key = keys.mint(organization, Scope.READ).api_key
    user = User.objects.create_user("ann@example.com", PASSWORD)
    for page, row in ((KEYS, api_key), (ORGANIZATIONS, organization), (USERS, user)):
        assert operator.post(f"{page}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        act(operator, page, "delete_selected", row, post="yes")
        row.refresh_from_db()


def test_disabling_and_enabling_an_organization_moves_the_stamp(
    operator: Client, organization: Organization
) -> None:
    seen = stamp()
    act(operator, ORGANIZATIONS, "disable", organization)
    assert Organization.objects.exclude(disabled_at=None).exists()
    assert stamp() > seen
    act(operator, ORGANIZATIONS, "enable", organization)
    assert Organization.objects.filter(disabled_at=None).exists()
    history = words(operator.get(f"{ORGANIZATIONS}{organization.pk}/history/").content.decode())
    assert history.index("(Admin) enabled") < history.index("(Admin) disabled")


def test_a_user_is_added_by_email_in_lower_case_and_once(operator: Client) -> None:
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    form = {"email": "Ann@Example.com", **passwords, **NO_MEMBERS}
    assert operator.post(f"{USERS}add/", form).status_code == 302
    user = User.objects.get(email="ann@example.com")
    assert user.check_password(PASSWORD)
    assert not user.is_staff
    assert operator.post(f"{USERS}add/", form).status_code == 200, "the form comes back"
    assert User.objects.filter(email__iexact="ann@example.com").count() == 1


@pytest.mark.parametrize("page", [KEYS, ORGANIZATIONS, USERS])
def test_a_longer_list_costs_no_more_queries(
    operator: Client, organization: Organization, page: str
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert operator.get(page).status_code == 200
        return len(captured)

    def add_rows(first: int) -> None:
        for number in range(first, first + 5):
            one = Organization.objects.create(name=f"Organization {number}")
            keys.mint(one, Scope.READ)
            User.objects.create(email=f"user{number}@example.com", password="!")

    add_rows(0)
    before = count()
    add_rows(5)
    assert count() == before


def test_a_key_is_never_shown_again_nor_its_digest(
    operator: Client, organization: Organization
) -> None:
    new = keys.mint(organization, Scope.INFERENCE, "checkout")
    pages = [
        page_at(operator, f"{KEYS}{new.api_key.pk}/change/"),
        page_at(operator, KEYS),
        page_at(operator, f"{KEYS}{new.api_key.pk}/history/"),
        page_at(operator, "/admin/accounts/auditentry/"),
        page_at(operator, f"{ORGANIZATIONS}{organization.pk}/change/"),
    ]
    assert new.api_key.prefix in pages[0]
    for each in pages:
        assert new.secret not in each
        assert new.api_key.digest not in each


def test_a_form_sent_again_makes_no_second_key(
    operator: Client, organization: Organization
) -> None:
    token = re.search(r'name="one_time" value="([^"]+)"', page_at(operator, f"{KEYS}add/"))
    assert token is not None
    form = {"organization": organization.pk, "scope": "read", "label": "x", "one_time": token[1]}
    assert "The secret, shown once" in operator.post(f"{KEYS}add/", form).content.decode()

    again = operator.post(f"{KEYS}add/", form).content.decode()

    (api_key,) = ApiKey.objects.all()
    assert f"This form made the key {api_key.prefix}… already" in again


def test_a_password_is_never_shown_nor_any_part_of_its_hash(operator: Client) -> None:
    user = User.objects.get()
    shown = page_at(operator, f"{USERS}{user.pk}/change/")
    assert "Set another" in shown
    algorithm, _, salt, digest = user.password.split("$")
    for part in (algorithm, salt[:6], digest[:6]):
        assert part not in shown


def test_a_backends_key_is_named_and_not_shown(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU1", "the-value-of-the-key")
    backend = catalog_rows.backend(api_key_env="SVC_BACKEND_KEY_GPU1")
    shown = page_at(operator, f"/admin/inference/backend/{backend.pk}/change/")
    assert "SVC_BACKEND_KEY_GPU1" in shown
    assert "the-value-of-the-key" not in shown

    form = {"name": "gpu", "base_url": "http://10.0.0.5/v1", "api_key_env": "sk-pasted-key!"}
    refused = operator.post("/admin/inference/backend/add/", form)
    assert "Give the name of a variable, not a key." in refused.content.decode()
