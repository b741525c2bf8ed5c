"""Secrets can be entered in the admin, and are never shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import ApiKey, Organization, Scope, User
from tests.support.builders import catalog_rows

PASSWORD = "correct horse battery"


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_superuser("root@northwind.example", PASSWORD)


@pytest.fixture
def admin(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


def page(admin: Client, address: str) -> str:
    answer = admin.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_key_is_never_shown_again_nor_its_digest(admin: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    new = mint(organization, Scope.INFERENCE, "checkout")
    pages = [
        page(admin, f"/admin/accounts/apikey/{new.api_key.pk}/change/"),
        page(admin, "/admin/accounts/apikey/"),
        page(admin, f"/admin/accounts/apikey/{new.api_key.pk}/history/"),
        page(admin, "/admin/accounts/auditentry/"),
        page(admin, f"/admin/accounts/organization/{organization.pk}/change/"),
    ]
    assert new.api_key.prefix in pages[0]
    for each in pages:
        assert new.secret not in each
        assert new.api_key.digest not in each


def test_a_form_sent_again_makes_no_second_key(admin: Client) -> None:
    address = "/admin/accounts/apikey/add/"
    token = re.search(r'name="one_time" value="([^"]+)"', page(admin, address))
    assert token is not None
    organization = Organization.objects.create(name="Northwind")
    form = {"organization": organization.pk, "scope": "read", "label": "x", "one_time": token[1]}
    assert "The secret, shown once" in admin.post(address, form).content.decode()

    again = admin.post(address, form).content.decode()

    (api_key,) = ApiKey.objects.all()
    assert f"This form made the key {api_key.prefix}… already" in again


def test_a_password_is_never_shown_nor_any_part_of_its_hash(admin: Client, operator: User) -> None:
    shown = page(admin, f"/admin/accounts/user/{operator.pk}/change/")
    assert "Set another" in shown
    algorithm, _, salt, digest = operator.password.split("$")
    for part in (algorithm, salt[:6], digest[:6]):
        assert part not in shown


def test_the_password_is_set_on_a_page_of_its_own(admin: Client, operator: User) -> None:
    other = User.objects.create_user("ada@northwind.example", PASSWORD)
    new = {"password1": "another long one", "password2": "another long one"}
    answer = admin.post(
        f"/admin/accounts/user/{other.pk}/password/", {**new, "usable_password": "true"}
    )
    assert answer.status_code == 302
    other.refresh_from_db()
    assert other.check_password("another long one")


def test_a_user_is_saved_without_touching_the_password(admin: Client, operator: User) -> None:
    other = User.objects.create_user("ada@northwind.example", PASSWORD)
    form = {
        "email": "ada@northwind.example",
        "is_active": "on",
        "is_staff": "on",
        "password": "forged",
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }
    answer = admin.post(f"/admin/accounts/user/{other.pk}/change/", form)
    assert answer.status_code == 302
    other.refresh_from_db()
    assert other.is_staff
    assert other.check_password(PASSWORD)


def test_a_backends_key_is_named_and_not_shown(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_GPU1", "the-value-of-the-key")
    backend = catalog_rows.backend(api_key_env="SVC_BACKEND_KEY_GPU1")
    shown = page(admin, f"/admin/inference/backend/{backend.pk}/change/")
    assert "SVC_BACKEND_KEY_GPU1" in shown
    assert "the-value-of-the-key" not in shown

    form = {"name": "gpu", "base_url": "http://10.0.0.5/v1", "api_key_env": "sk-pasted-key!"}
    refused = admin.post("/admin/inference/backend/add/", form)
    assert "Give the name of a variable, not a key." in refused.content.decode()
