"""People change their own password; their other sessions end."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from tests.support.pages.console import PASSWORD

NEW = "a better battery staple"


def change(console: Client, old: str, new: str, again: str | None = None) -> str:
    fields = {"old_password": old, "new_password1": new, "new_password2": again or new}
    return console.post("/console/password", fields, follow=True).content.decode()


def test_a_new_password_ends_other_sessions_and_keeps_this_one(
    console: Client, person: User
) -> None:
    other = Client()
    other.force_login(person)

    page = change(console, PASSWORD, NEW)

    assert "Your password is changed." in page
    assert console.get("/console/keys").status_code == 200
    assert other.get("/console/keys").status_code == 302
    person.refresh_from_db()
    assert person.check_password(NEW)


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [("wrong", NEW, NEW), (PASSWORD, NEW, "different one"), (PASSWORD, "short", "short")],
)
def test_a_wrong_change_is_explained_and_changes_nothing(
    console: Client, person: User, old: str, new: str, again: str
) -> None:
    page = change(console, old, new, again)

    assert "errorlist" in page
    person.refresh_from_db()
    assert person.check_password(PASSWORD)
