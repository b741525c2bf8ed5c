"""Operators make one-time links for users whose password they might set, and no others."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import AuditEntry, User
from tests.support.pages.admin_forms import logged_in, operator

pytestmark = pytest.mark.django_db

MANAGES_USERS = ("accounts.view_user", "accounts.change_user")
NEW = "a better battery staple"


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ann@acme.example", "correct horse battery")


def address(user: User) -> str:
    return f"/admin/accounts/user/{user.pk}/password-link/"


def test_a_link_is_shown_once_works_and_is_audited(user: User) -> None:
    me = operator(*MANAGES_USERS)
    client = logged_in(me)
    assert "http://testserver" not in client.get(address(user)).content.decode()
    assert not AuditEntry.objects.filter(verb="given a one-time link").exists()

    made = client.post(address(user))

    assert made["cache-control"] == "no-store"
    found = re.search(r"http://testserver(/console/password/set/[^<\s]+)", made.content.decode())
    assert found is not None
    assert "/console/password/set" not in client.get(address(user)).content.decode()
    entry = AuditEntry.objects.get(verb="given a one-time link")
    assert (entry.actor, entry.subject) == (me.email, user.email)
    assert found[1].rsplit("/", 1)[1] not in str(entry.changes)

    browser = Client()
    form = browser.get(found[1], follow=True).redirect_chain[-1][0]
    browser.post(form, {"new_password1": NEW, "new_password2": NEW})
    user.refresh_from_db()
    assert user.check_password(NEW)
    assert "This link has ended" in Client().get(found[1], follow=True).content.decode()


def test_a_user_without_a_password_can_be_given_a_link(user: User) -> None:
    user.set_unusable_password()
    user.save()

    page = logged_in(operator(*MANAGES_USERS)).post(address(user)).content.decode()

    assert "/console/password/set/" in page


@pytest.mark.parametrize("rights", [(), ("accounts.view_user",)])
def test_the_right_to_change_users_is_needed(user: User, rights: tuple[str, ...]) -> None:
    assert logged_in(operator(*rights)).post(address(user)).status_code == 403


def test_a_user_who_is_not_active_is_made_so_first(user: User) -> None:
    user.is_active = False
    user.save()

    page = logged_in(operator(*MANAGES_USERS)).post(address(user)).content.decode()

    assert "/console/password/set/" not in page
    assert "Make the user active first" in page
