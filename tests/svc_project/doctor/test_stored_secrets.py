"""A host whose secrets are not those with which the database's content was made."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from pytest_django.fixtures import Settings

from accounts.keys import keys
from accounts.models import Organization, Scope
from core import clock
from core.sealing import Cipher
from inference.models import DiagnosticCapture
from svc_project.doctor import stored_secrets
from svc_project.doctor.findings import State

pytestmark = pytest.mark.django_db


def fill() -> None:
    """Make a key, a login and a capture."""
    keys.mint(Organization.objects.create(name="Acme"), Scope.READ)
    session = SessionStore()
    session["user"] = "ann"
    session.save()
    DiagnosticCapture.objects.create(
        request_id="req_1",
        organization_id=uuid.uuid4(),
        created_at=clock.now(),
        expires_at=clock.now() + timedelta(days=1),
        content=Cipher(["0123456789abcdef" * 3]).seal(b"{}"),
    )


def faulty() -> list[str]:
    found = list(stored_secrets.compare())
    return [each.words.split()[0] for each in found if each.state is State.FAULT]


@pytest.fixture
def filled(settings: Settings) -> Settings:
    settings.SVC_CAPTURE_KEYS = ["0123456789abcdef" * 3]
    fill()
    return settings


def test_the_same_secrets_are_fine(filled: Settings) -> None:
    assert faulty() == []


@pytest.mark.parametrize("setting", ["SVC_KEY_PEPPERS", "SECRET_KEY", "SVC_CAPTURE_KEYS"])
def test_another_secret_is_a_fault_until_the_old_one_is_listed_too(
    filled: Settings, setting: str
) -> None:
    old, new = getattr(filled, setting), "another secret of this host alone"
    setattr(filled, setting, new if setting == "SECRET_KEY" else [new])
    assert faulty() == [setting]

    if setting != "SECRET_KEY":
        setattr(filled, setting, [new, *old])
        assert faulty() == []


def test_a_revoked_key_needs_no_pepper(filled: Settings) -> None:
    for key in Organization.objects.get().api_keys.all():
        keys.revoke(key)
    filled.SVC_KEY_PEPPERS = ["another"]
    assert faulty() == []
