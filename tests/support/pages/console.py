"""A member in the console, and rows of the ledger."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from accounts.console.addresses import ROOT, is_of_organization
from accounts.keys.keys import NewKey, mint
from accounts.models import Membership, Organization, Scope, User
from core.clock import now
from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.receipts import Receipt

PASSWORD = "correct horse battery"
NOVEMBER = "start=2026-11-01&end=2026-12-01"
Insert = Callable[..., Receipt]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ago(**time: float) -> str:
    """That time ago, as ``insert`` takes it."""
    return (now() - timedelta(**time)).replace(tzinfo=None).isoformat()


def folded(page: str) -> str:
    """The page without the exact figures behind rounded ones, as it is first shown."""
    return re.sub(r'<span class="whole">.*?</button>', "", page)


def page_at(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def text_of(page: str, element_id: str) -> str:
    """The text of an element, without tags and with white space folded."""
    found = re.search(rf'<(\w+)[^>]* id="{element_id}"[^>]*>(.*?)</\1>', page, re.DOTALL)
    assert found is not None, f"no element {element_id}"
    return words(found[2])


def words(page: str) -> str:
    """The text of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", folded(page))).split())


class ConsoleClient(Client):
    """A browser session whose paths may leave out the organization: ``/console/usage``."""

    def __init__(self, organization: Organization, **options: Any) -> None:
        super().__init__(**options)
        self.organization = organization

    def generic(self, method: str, path: Any, *args: Any, **options: Any) -> Any:
        return super().generic(method, address_of(self.organization, str(path)), *args, **options)


def address_of(organization: Organization, path: str) -> str:
    """``path``; with the organization, where it is one of its pages."""
    page = path.partition("?")[0]
    if not page.startswith(ROOT) or "organization" in (found := resolve(page)).kwargs:
        return path
    if not is_of_organization(found.url_name):
        return path
    return path.replace(ROOT, f"{ROOT}{organization.slug}/", 1)


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.create(name="Northwind")


@pytest.fixture
def stranger(db: None) -> Organization:
    """An organization that the person does not belong to."""
    return Organization.objects.create(name="Strangers Ltd")


def member(organization: Organization, email: str = "ada@northwind.example") -> User:
    """A person of the organization, whose password is ``PASSWORD``."""
    user = User.objects.create_user(email, PASSWORD)
    Membership.objects.create(user=user, organization=organization)
    return user


@pytest.fixture
def person(organization: Organization) -> User:
    return member(organization)


@pytest.fixture
def console(person: User, organization: Organization) -> Client:
    """A browser session of the person."""
    client = ConsoleClient(organization, enforce_csrf_checks=False)
    client.force_login(person)
    return client


@pytest.fixture
def key(organization: Organization) -> NewKey:
    return mint(organization, Scope.INFERENCE, "checkout")


@pytest.fixture
def insert(organization: Organization) -> Insert:
    """A function that writes a row of the organization at a moment, and returns its receipt."""

    def write(at: str, **facts: Any) -> Receipt:
        one = receipt(**{"organization_id": str(organization.pk), **facts})
        rows.insert([one], moment(at))
        return one

    return write
