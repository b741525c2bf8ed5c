"""Mailed links lead to the gateway, whatever ``Host`` the request that asked for one had."""

from __future__ import annotations

import re
from email import message_from_string
from pathlib import Path

import httpx2
import pytest
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.login.password_links import reset_mails
from accounts.models import User
from core.environment import SettingsEnv
from tests.support.live import NO_TLS, Gateway
from tests.support.pages.admin_forms import logged_in, operator
from tests.support.pages.console import PASSWORD
from tests.support.until import until

FORGOTTEN = "/console/password/forgotten"
NONE_HERE = "mails no links for the address that your browser shows"


@pytest.fixture
def person(transactional_db: None) -> User:
    return User.objects.create_user("ada@northwind.example", PASSWORD)


@pytest.fixture(autouse=True)
def _sends_mail(settings: Settings) -> None:
    settings.SVC_SENDS_MAIL = True
    settings.ALLOWED_HOSTS = ["gateway.example", "127.0.0.1", "[::1]", ".wild.example"]


def mailed(person: User, host: str, port: int = 8000) -> str | None:
    """Ask for a link with a ``Host`` at a server on ``port``; return the beginning of the link."""
    mail.outbox.clear()
    page = Client().post(FORGOTTEN, {"email": person.email}, HTTP_HOST=host, SERVER_PORT=str(port))
    reset_mails.close()
    assert page.status_code == 200
    if not mail.outbox:
        assert NONE_HERE in page.content.decode()
        assert "one-time link" in page.content.decode()
        return None
    (sent,) = mail.outbox
    found = re.search(r"(\S+)/console/password/set/", str(sent.body))
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("gateway.example", "http://gateway.example"),
        ("Gateway.Example", "http://Gateway.Example"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("gateway.example:6666", None),
        ("gateway.example:80", None),
        ("any.wild.example", None),
        (".wild.example", None),
    ],
)
def test_without_a_public_address_only_the_servers_own_are_mailed(
    person: User, host: str, address: str | None
) -> None:
    assert mailed(person, host) == address


def test_with_a_wildcard_for_every_host_no_link_is_mailed(person: User, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    assert mailed(person, "evil.example") is None


def test_the_page_says_so_before_an_address_is_entered(person: User) -> None:
    page = Client().get(FORGOTTEN, HTTP_HOST="gateway.example:6666").content.decode()

    assert NONE_HERE in page
    assert 'name="email"' not in page


@pytest.mark.parametrize("host", ["gateway.example", "gateway.example:6666", "any.wild.example"])
def test_with_a_public_address_every_link_is_there(
    person: User, settings: Settings, host: str
) -> None:
    settings.SVC_PUBLIC_URL = "https://ai.example.com"

    assert mailed(person, host) == "https://ai.example.com"


@pytest.mark.parametrize("public", ["", "https://ai.example.com"])
def test_an_operators_link_is_at_the_public_address_or_at_that_of_the_own_browser(
    person: User, settings: Settings, public: str
) -> None:
    settings.SVC_PUBLIC_URL = public
    me = operator("accounts.view_user", "accounts.change_user")

    page = logged_in(me).post(
        f"/admin/accounts/user/{person.pk}/password-link/", HTTP_HOST="127.0.0.1:8080"
    )

    address = public or "http://127.0.0.1:8080"
    assert f"{address}/console/password/set/" in page.content.decode()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", ""),
        ("https://ai.example.com", "https://ai.example.com"),
        ("https://AI.example.com/", "https://ai.example.com"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_public_address_is_read(monkeypatch: pytest.MonkeyPatch, given: str, read: str) -> None:
    monkeypatch.setenv("SVC_PUBLIC_URL", given)

    assert SettingsEnv().origin("SVC_PUBLIC_URL") == read


def test_a_running_gateway_mails_links_to_its_own_port_and_to_no_other(
    gateway: Gateway, worker_directory: Path
) -> None:
    email = f"{gateway.organization.pk}@northwind.example"
    User.objects.create_user(email, PASSWORD)

    def ask(host: str) -> str:
        with httpx2.Client(
            base_url=gateway.url, verify=NO_TLS, headers={"host": host}, timeout=60
        ) as browser:
            page = browser.get(FORGOTTEN).text
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
            form = {"email": email, "csrfmiddlewaretoken": token[1] if token else ""}
            return browser.post(FORGOTTEN, data=form).text if token else page

    assert NONE_HERE in ask("127.0.0.1:6666")
    assert "a link is on its way" in ask(f"127.0.0.1:{gateway.port}")

    def sent() -> str | None:
        texts = [path.read_text() for path in (worker_directory / "mail").glob("*")]
        return next((text for text in texts if f"To: {email}" in text), None)

    text = message_from_string(until(sent)).get_payload()
    assert f"http://127.0.0.1:{gateway.port}/console/password/set/" in str(text)
    assert "6666" not in str(text)
