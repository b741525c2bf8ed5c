"""Fixtures of tests that answer requests in this process: an organization and readers of its data."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.test import Client

from accounts.keys import keys
from accounts.keys.keyring import keyring
from accounts.models import Membership, Organization, Scope, User


@pytest.fixture(scope="module", autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Stop the key ring's threads after the test, when no transaction is open that they could wait for."""
    yield
    keyring.close()


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.create(name="Acme")


@pytest.fixture
def reader(organization: Organization) -> Client:
    """A client with a read key of ``organization``."""
    return client_with(keys.mint(organization, Scope.READ).secret)


@pytest.fixture
def operator(db: None) -> Client:
    """A browser in which the superuser op@example.com is logged in."""
    client = Client()
    client.force_login(User.objects.create_superuser("op@example.com", "correct horse battery"))
    return client


def client_with(secret: str) -> Client:
    return Client(headers={"authorization": f"Bearer {secret}"})


def signed_in(organization: Organization) -> Client:
    """A browser with a session of the console, of a new person of ``organization``."""
    user = User.objects.create_user(f"{uuid.uuid4()}@example.com", "correct horse battery")
    Membership.objects.create(user=user, organization=organization)
    browser = Client()
    browser.force_login(user)
    return browser
