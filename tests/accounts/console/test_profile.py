"""People see and change their profile."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Membership, Organization, User
from tests.support.pages.console import words

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

    assert "All times UTC" in console.get("/console/requests").content.decode()
