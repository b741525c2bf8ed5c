"""People who forgot their password get a link by mail, and strangers learn nothing."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import mail
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.login.password_links import reset_mails
from accounts.models import AuditEntry, User
from core import clock
from tests.support.pages.console import PASSWORD, words

pytestmark = pytest.mark.django_db(transaction=True)

FORGOTTEN = "/console/password/forgotten"
NEW = "a better battery staple"


@pytest.fixture(autouse=True)
def _sends_mail(settings: Settings) -> None:
    settings.SVC_SENDS_MAIL = True
    settings.DEFAULT_FROM_EMAIL = "svc@gateway.example"


def ask(email: str, address: str = "203.0.113.7") -> HttpResponse:
    return Client().post(FORGOTTEN, {"email": email}, REMOTE_ADDR=address)  # type: ignore[return-value]  # the test client's own class


def link_to(person: User) -> str:
    """Ask for a link and return the path that the mail has."""
    mail.outbox.clear()
    ask(person.email)
    reset_mails.close()
    (sent,) = mail.outbox
    assert sent.to == [person.email]
    assert sent.from_email == "svc@gateway.example"
    found = re.search(r"http://testserver(/console/password/set/\S+)", str(sent.body))
    assert found is not None
    return found[1]


def test_the_mailed_link_sets_a_password_once_and_ends_all_sessions(
    console: Client, person: User
) -> None:
    browser, link = Client(), link_to(person)

    form = browser.get(link, follow=True)
    assert "Set a new password" in form.content.decode()
    address = form.redirect_chain[-1][0]
    assert link.rsplit("/", 1)[1] not in address, "the address bar keeps no token"
    done = browser.post(address, {"new_password1": NEW, "new_password2": NEW}, follow=True)

    assert "Your new password is set" in done.content.decode()
    person.refresh_from_db()
    assert person.check_password(NEW)
    assert console.get("/console/keys").status_code == 302, "the earlier session has ended"
    assert browser.get("/console/keys").status_code == 302, "nobody is logged in by it"
    again = Client().get(link, follow=True).content.decode()
    assert "This link has ended" in again
    entry = AuditEntry.objects.get(verb="set a new password with a link")
    assert (entry.actor, entry.subject) == (person.email, person.email)
    assert entry.changes["password"] == ["not shown", "not shown"]


def test_unknown_and_known_addresses_get_the_same_answer_for_the_same_work(
    person: User, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(reset_mails, "ask", lambda email, request: asked.append(email))
    User.objects.create_user("off@northwind.example", PASSWORD, is_active=False)
    answers = []
    ask("warm@up.example", "203.0.113.9")
    for number, email in enumerate((person.email, "nobody@x.example", "off@northwind.example")):
        with django_assert_num_queries(7):
            answer = ask(email, f"203.0.113.{number}")
        answers.append(words(answer.content.decode()).replace(email, ""))

    assert len(set(answers)) == 1
    assert "If has an account here, a link is on its way." in " ".join(answers[0].split())
    assert len(asked) == 4, "whoever is asked for, the look-up is not made by the request"


@pytest.mark.parametrize("kind", ["unknown", "switched off", "without a password"])
def test_others_get_no_mail(person: User, kind: str) -> None:
    if kind == "switched off":
        person.is_active = False
    if kind == "without a password":
        person.set_unusable_password()
    person.save()

    ask("nobody@northwind.example" if kind == "unknown" else person.email)
    reset_mails.close()

    assert mail.outbox == []


def test_links_are_throttled_by_account_and_address_and_logins_are_not(
    person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)
    statuses = [ask(person.email, f"203.0.113.{number}").status_code for number in range(4)]
    assert statuses == [200, 200, 200, 429]
    refused = ask(person.email, "203.0.113.99")
    assert refused["retry-after"] == "60"
    assert "Too many requests for a link. Try again in 60 seconds." in refused.content.decode()
    other = [ask(f"n{number}@x.example", "198.51.100.1").status_code for number in range(11)]
    assert other == [200] * 10 + [429]

    login = {"username": person.email, "password": PASSWORD}
    assert Client().post("/console/login", login).status_code == 302
    reset_mails.close()


def test_a_link_ends_with_a_login_and_with_time(
    person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = link_to(person)
    later = datetime.now() + timedelta(hours=24, seconds=5)  # noqa: DTZ005  # Django's own clock
    with monkeypatch.context() as patch:
        patch.setattr(PasswordResetTokenGenerator, "_now", lambda self: later)
        assert "This link has ended" in Client().get(link, follow=True).content.decode()
    assert "Set a new password" in Client().get(link, follow=True).content.decode()

    Client().post("/console/login", {"username": person.email, "password": PASSWORD})
    assert "This link has ended" in Client().get(link, follow=True).content.decode()


@pytest.mark.parametrize("path", ["x/y", "MQ/abc-def", "%00/%00"])
def test_a_made_up_link_opens_nothing(db: None, path: str) -> None:
    answer = Client().get(f"/console/password/set/{path}", follow=True)

    assert answer.status_code == 200
    assert "This link has ended" in answer.content.decode()


def test_without_mail_the_page_names_the_way_by_an_operator(
    person: User, settings: Settings
) -> None:
    settings.SVC_SENDS_MAIL = False

    assert "one-time link" in Client().get(FORGOTTEN).content.decode()
    assert "one-time link" in ask(person.email).content.decode()
    reset_mails.close()
    assert mail.outbox == []


def test_a_mail_server_that_fails_is_logged_without_the_address(
    person: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1

    assert ask(person.email).status_code == 200
    reset_mails.close()

    assert "a mail with a link was not sent: ConnectionRefusedError" in caplog.text
    assert person.email not in caplog.text
