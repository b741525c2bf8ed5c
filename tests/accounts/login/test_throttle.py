"""The login throttle: failures have to wait, and the right user can always log in again."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from accounts.login.throttle import ACCOUNT, ACCOUNT_HERE, ADDRESS, admit
from accounts.models import FailedLogins, User
from core import clock
from tests.support.live import NO_TLS, Gateway

EMAIL, PASSWORD = "ada@northwind.example", "correct horse battery"
DOORS = {"console": "/console/login", "admin": "/admin/login/"}


class Time:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.moment = datetime.fromisoformat("2026-11-20T10:00:00+00:00")

    def __call__(self) -> datetime:
        return self.moment

    def passes(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Time:
    time = Time()
    monkeypatch.setattr(clock, "now", time)
    return time


@pytest.fixture
def user(db: None, time: Time) -> User:
    return User.objects.create_superuser(EMAIL, PASSWORD)


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    return DOORS[request.param]


def attempt(
    door: str = DOORS["console"],
    password: str = "wrong",
    email: str = EMAIL,
    address: str = "203.0.113.7",
    client: Client | None = None,
    **headers: Any,
) -> HttpResponse:
    form = {"username": email, "password": password}
    return (client or Client()).post(door, form, REMOTE_ADDR=address, **headers)  # type: ignore[return-value]  # the test client's own class


def test_after_five_failures_a_login_has_to_wait(user: User, time: Time, door: str) -> None:
    assert [attempt(door).status_code for _ in range(5)] == [200] * 5

    refused = attempt(door, PASSWORD)
    assert refused.status_code == 429
    assert refused["retry-after"] == "15"
    assert "Too many failed logins. Try again in 15 seconds." in refused.content.decode()
    assert "sessionid" not in refused.cookies

    time.passes(15)
    assert attempt(door, PASSWORD).status_code == 302


def test_console_and_admin_share_one_counter(user: User) -> None:
    for door in [*DOORS.values()] * 3:
        attempt(door)
    assert {attempt(door, PASSWORD).status_code for door in DOORS.values()} == {429}


def test_waits_double_up_to_a_quarter_of_an_hour(user: User, time: Time) -> None:
    for _ in range(ACCOUNT_HERE.free):
        attempt()
    waits = []
    for _ in range(9):
        waits.append(int(attempt()["retry-after"]))
        time.passes(waits[-1])
        assert attempt().status_code == 200
    assert waits == [15, 30, 60, 120, 240, 480, 900, 900, 900]
    assert "Try again in 15 minutes." in attempt().content.decode()


def test_a_refused_try_does_not_prolong_the_wait(user: User, time: Time) -> None:
    for _ in range(30):
        attempt()
    time.passes(15)
    assert attempt(password=PASSWORD).status_code == 302


def test_a_success_starts_anew(user: User) -> None:
    for _ in range(3):
        for _ in range(ACCOUNT_HERE.free - 1):
            assert attempt().status_code == 200
        assert attempt(password=PASSWORD).status_code == 302


def test_an_hour_without_failures_starts_anew_and_leaves_nothing(user: User, time: Time) -> None:
    for _ in range(ACCOUNT_HERE.free):
        attempt()
    time.passes(3601)
    assert attempt(address="198.51.100.1", email="other@northwind.example").status_code == 200
    assert FailedLogins.objects.count() == 3
    for _ in range(ACCOUNT_HERE.free):
        assert attempt().status_code == 200


def test_an_account_without_a_user_is_treated_alike(user: User) -> None:
    def answers(email: str, address: str) -> list[tuple[int, str]]:
        found = [attempt(email=email, address=address) for _ in range(7)]
        texts = [re.findall(r'role="alert">(.*?)<', each.content.decode())[0] for each in found]
        return [(each.status_code, text) for each, text in zip(found, texts, strict=True)]

    assert answers(EMAIL, "203.0.113.1") == answers("nobody@northwind.example", "203.0.113.2")


def test_a_failure_during_the_refund_of_a_success_still_counts(user: User, time: Time) -> None:
    request = RequestFactory().post("/console/login", REMOTE_ADDR="203.0.113.7")
    for number in range(ADDRESS.free - 4):
        admit(request, f"a{number}@x.example")
    right = admit(request, EMAIL)
    others = ["b@x.example", "c@x.example"]
    meanwhile: list[str] = []
    charging = threading.Event()

    def between(execute: Any, sql: str, *arguments: Any) -> Any:
        """After each statement of the right login, another login of the address is charged."""
        found = execute(sql, *arguments)
        if not charging.is_set() and len(others) > len(meanwhile):
            email = others[len(meanwhile)]
            meanwhile.append(email)
            time.passes(1)
            charging.set()
            admit(request, email)
            charging.clear()
        return found

    with connection.execute_wrapper(between):
        right.succeeded()

    assert meanwhile == others
    # Two of the last four tries are used up: two more, and then one waits.
    statuses = [attempt(email=f"d{number}@x.example").status_code for number in range(3)]
    assert statuses == [200, 200, 429]


def test_many_addresses_do_not_help_against_one_account(user: User) -> None:
    answers = [attempt(address=f"203.0.113.{n}").status_code for n in range(ACCOUNT.free + 3)]
    assert answers == [200] * ACCOUNT.free + [429] * 3


def test_many_accounts_do_not_help_from_one_address(user: User) -> None:
    answers = [attempt(email=f"a{n}@x.example").status_code for n in range(ADDRESS.free + 2)]
    assert answers == [200] * ADDRESS.free + [429] * 2
    assert attempt(address="198.51.100.1", password=PASSWORD).status_code == 302


def test_an_address_in_ipv6_is_its_network(user: User) -> None:
    answers = [attempt(address=f"2001:db8:1:2::{n + 1}").status_code for n in range(7)]
    assert answers == [200] * 5 + [429] * 2
    assert attempt(address="2001:db8:1:3::1").status_code == 200


def test_a_success_refunds_the_address_only_its_own_try(user: User) -> None:
    """Otherwise an attacker could reset the count by logging in to an account of their own."""
    for number in range(ADDRESS.free - 1):
        attempt(email=f"a{number}@x.example")
        if number % 10 == 0:
            assert attempt(password=PASSWORD).status_code == 302
    assert attempt(email="last@x.example").status_code == 200
    assert attempt(email="more@x.example").status_code == 429


def test_a_user_cannot_be_locked_out_of_a_browser_they_use(
    user: User, time: Time, door: str
) -> None:
    own = Client()
    assert attempt(door, PASSWORD, client=own).status_code == 302
    own.cookies.pop("sessionid")
    for number in range(ACCOUNT.free + 5):
        attempt(address=f"198.51.{number}.1")
    assert attempt(address="192.0.2.1", password=PASSWORD).status_code == 429

    assert attempt(door, PASSWORD, client=own, address="192.0.2.2").status_code == 302


def test_a_browser_has_a_ladder_of_its_own_and_for_its_own_user_only(user: User) -> None:
    User.objects.create_user("bob@northwind.example", PASSWORD)
    own = Client()
    attempt(password=PASSWORD, client=own)
    for _ in range(ACCOUNT_HERE.free):
        assert attempt(client=own).status_code == 200
    assert attempt(client=own).status_code == 429

    for _ in range(ACCOUNT_HERE.free):
        attempt(email="bob@northwind.example")
    assert attempt(email="bob@northwind.example", client=own).status_code == 429


@pytest.mark.parametrize("cookie", ["", "x", "a:b:c", "{}:1:x", "\u00e9"])
def test_an_invented_device_cookie_is_ignored(user: User, cookie: str) -> None:
    client = Client()
    client.cookies["device"] = cookie
    answers = [attempt(client=client).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]


def test_behind_a_proxy_only_its_client_address_counts(user: User, settings: Settings) -> None:
    settings.SVC_PROXIES = 1

    def through(seen: str, number: int) -> int:
        return attempt(
            address="10.0.0.1", HTTP_X_FORWARDED_FOR=f"192.0.2.{number}, {seen}"
        ).status_code

    assert [through("203.0.113.7", n) for n in range(6)] == [200] * 5 + [429]
    assert through("203.0.113.8", 0) == 200


def test_typed_addresses_are_not_stored(user: User) -> None:
    attempt(email="hunter2@northwind.example", password="hunter2")
    kept = str(list(FailedLogins.objects.values()))
    assert "hunter2" not in kept
    assert "203.0.113.7" not in kept


def test_a_login_makes_a_new_session_and_a_new_token(user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.get("/console/login")
    session = client.session
    session["planted"] = "before"
    session.save()
    client.cookies["sessionid"] = session.session_key or ""
    token = client.cookies["csrftoken"].value
    client.post(
        "/console/login",
        {"username": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token},
    )

    assert client.cookies["sessionid"].value != session.session_key
    assert client.cookies["csrftoken"].value != token
    thief = Client()
    thief.cookies["sessionid"] = session.session_key or ""
    assert thief.get("/console/keys").status_code == 302


def test_two_processes_count_together_and_none_lets_more_through(
    start_gateway: Callable[..., Gateway],
) -> None:
    """Of twenty tries at the same time in two processes, the passwords of five are checked."""
    # Strangers wait for two threads here: on a slow machine for longer than the five seconds of 503.
    gateway = start_gateway(SVC_DJANGO_QUEUE_SECONDS="60")
    email = f"{gateway.organization.pk.hex[:8]}@x.example"

    def once(number: int) -> int:
        if number % 2:
            try:
                return attempt(email=email, address="127.0.0.1").status_code
            finally:
                connection.close()
        with httpx2.Client(base_url=gateway.url, verify=NO_TLS, timeout=60) as browser:
            page = browser.get("/console/login").text
            token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[0]
            form = {"username": email, "password": "wrong", "csrfmiddlewaretoken": token}
            return browser.post("/console/login", data=form).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(once, range(20)))

    assert sorted(answers) == [200] * 5 + [429] * 15
