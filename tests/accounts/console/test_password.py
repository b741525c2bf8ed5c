"""People change their own password, which ends their other sessions, and their profile."""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse
from django.test import Client

from accounts.login.throttle import ACCOUNT_HERE
from accounts.models import FailedLogins, Membership, Organization, User
from tests.support.pages.console import PASSWORD, words

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
    assert console.get("/console/northwind/keys").status_code == 200

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
    assert other.get("/console/northwind/keys").status_code == 200

    assert guess(console, form, PASSWORD).status_code == 302

    assert console.get("/console/northwind/keys").status_code == 200
    assert other.get("/console/northwind/keys").status_code == 302
    person.refresh_from_db()
    assert person.check_password(NEW)


PROFILE = "/console/profile"


def test_a_profile_shows_the_account_and_its_organizations(
    console: Client, person: User, stranger: Organization
) -> None:
    Membership.objects.create(user=person, organization=stranger)

    said = words(console.get(PROFILE).content.decode())

    assert "Email ada@northwind.example" in said
    assert "Organizations Northwind Strangers Ltd" in said
    assert re.search(r"Last login \d+ \w+ \d{4}, [\d:]+ UTC ", said)


def test_name_and_time_zone_are_changed_and_nothing_else(console: Client, person: User) -> None:
    form = {
        "name": "Ada Lovelace",
        "time_zone": "Asia/Kolkata",
        "email": "other@northwind.example",
        "is_staff": "on",
    }
    page = console.post(PROFILE, form, follow=True).content.decode()

    assert "Your profile is saved." in page
    assert re.search(r"Last login .* UTC\+05:30", words(page))
    assert re.search(r'<option value="Asia/Kolkata" selected>Asia/Kolkata</option>', page)
    person.refresh_from_db()
    assert (person.name, person.time_zone) == ("Ada Lovelace", "Asia/Kolkata")
    assert (person.email, person.is_staff) == ("ada@northwind.example", False)


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd", "Etc/GMT+5"])
def test_a_zone_that_is_not_in_the_list_is_refused(
    console: Client, person: User, zone: str
) -> None:
    page = console.post(PROFILE, {"name": "", "time_zone": zone}).content.decode()

    assert "errorlist" in page
    person.refresh_from_db()
    assert person.time_zone == "UTC"


def test_a_zone_that_this_machine_does_not_know_is_shown_as_utc(
    console: Client, person: User
) -> None:
    User.objects.filter(pk=person.pk).update(time_zone="Mars/Base")

    assert "All times UTC" in console.get("/console/northwind/requests").content.decode()
