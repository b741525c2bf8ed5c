"""People change their own password; their other sessions end."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client

from accounts.login.throttle import ACCOUNT_HERE
from accounts.models import FailedLogins, User
from tests.support.pages.console import PASSWORD

NEW = "a better battery staple"


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [("wrong", NEW, NEW), (PASSWORD, NEW, "different one"), (PASSWORD, "short", "short")],
)
def test_a_wrong_change_is_explained_and_changes_nothing(
    console: Client, person: User, old: str, new: str, again: str
) -> None:
    fields = {"old_password": old, "new_password1": new, "new_password2": again}
    page = console.post("/console/password", fields, follow=True).content.decode()

    assert "errorlist" in page
    person.refresh_from_db()
    assert person.check_password(PASSWORD)


FORMS = {
    "console": "/console/password",
    "admin": "/admin/password_change/",
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, person: User) -> str:
    person.is_staff = True
    person.save()
    return FORMS[request.param]


def guess(client: Client, form: str, old: str = "wrong") -> HttpResponse:
    fields = {"old_password": old, "new_password1": NEW, "new_password2": NEW}
    return client.post(form, fields)  # type: ignore[return-value]  # the test client's own class


def test_guessing_the_old_password_has_to_wait(console: Client, person: User, form: str) -> None:
    guesses = [guess(console, form) for _ in range(ACCOUNT_HERE.free)]
    assert [each.status_code for each in guesses] == [200] * ACCOUNT_HERE.free

    refused = guess(console, form, PASSWORD)

    assert refused.status_code == 429
    assert 0 < int(refused["retry-after"]) <= 15
    seconds = refused["retry-after"]
    assert f"Too many wrong passwords. Try again in {seconds} seconds." in refused.content.decode()
    person.refresh_from_db()
    assert person.check_password(PASSWORD)
    assert console.get("/console/keys").status_code == 200

    FailedLogins.objects.update(blocked_until=None)
    done = guess(console, form, PASSWORD)
    assert done.status_code == 302
    assert "assword" in console.get(done["location"]).content.decode()


def test_logins_and_both_forms_share_one_ladder(console: Client, person: User, form: str) -> None:
    login = {"username": person.email, "password": "wrong"}
    for _ in range(ACCOUNT_HERE.free - 1):
        guess(console, form)
    assert Client().post("/console/login", login).status_code == 200

    for other in FORMS.values():
        assert guess(console, other).status_code == 429
    assert Client().post("/console/login", login).status_code == 429


def test_a_right_password_is_refunded(console: Client, form: str) -> None:
    for _ in range(ACCOUNT_HERE.free - 1):
        guess(console, form)

    assert guess(console, form, PASSWORD).status_code == 302

    assert [guess(console, form).status_code for _ in range(ACCOUNT_HERE.free)] == [200] * 5


def test_a_new_password_that_is_refused_costs_no_try(console: Client, form: str) -> None:
    fields = {"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}

    assert {console.post(form, fields).status_code for _ in range(8)} == {200}


def test_a_stranger_who_guesses_does_not_delay_the_own_browser(person: User, form: str) -> None:
    browser = Client()
    browser.post("/console/login", {"username": person.email, "password": PASSWORD})
    stranger = Client()
    stranger.force_login(person)
    for _ in range(ACCOUNT_HERE.free + 1):
        last = guess(stranger, form)
    assert last.status_code == 429

    assert guess(browser, form, PASSWORD).status_code == 302


def test_a_new_password_ends_other_sessions_and_keeps_this_one(
    console: Client, person: User, form: str
) -> None:
    other = Client()
    other.force_login(person)
    assert other.get("/console/keys").status_code == 200

    assert guess(console, form, PASSWORD).status_code == 302

    assert console.get("/console/keys").status_code == 200
    assert other.get("/console/keys").status_code == 302
    person.refresh_from_db()
    assert person.check_password(NEW)
