"""Callers of DRF views: keys of the right scope and console sessions, no others."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest
from django.test import RequestFactory
from rest_framework.request import Request

from accounts.keys import keys
from accounts.keys.authentication import SESSION_ORGANIZATION, Caller, require
from accounts.models import Membership, Organization, Scope, User
from core import clock
from core.errors import InvalidCredential
from tests.support.pages.console import member

READ = frozenset({Scope.READ})

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(organization: Organization) -> User:
    return member(organization)


def request_of(user: User | None = None, method: str = "GET", **session: Any) -> HttpRequest:
    request = RequestFactory().generic(method, "/v1/usage")
    request.session = import_module(settings.SESSION_ENGINE).SessionStore()
    if user is not None:
        login(request, user)
    request.session.update(session)
    return request


def with_key(request: HttpRequest, secret: str) -> HttpRequest:
    request.META["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
    return request


def test_a_read_key_is_a_caller(organization: Organization) -> None:
    new = keys.mint(organization, Scope.READ)
    assert require(with_key(request_of(), new.secret), READ) == Caller(
        str(organization.pk), "standard", api_key_id=str(new.api_key.pk)
    )


def test_a_console_session_is_a_caller_also_behind_drf(
    organization: Organization, user: User
) -> None:
    expected = Caller(str(organization.pk), "standard", user_id=str(user.pk))
    assert require(request_of(user), READ) == expected
    drf_request = Request(request_of(user))
    assert not drf_request.user, "DRF has replaced Django's user by now"
    assert require(drf_request, READ) == expected


def test_the_organization_picked_in_the_session_counts_for_its_members_only(
    organization: Organization, user: User
) -> None:
    second = Organization.objects.create(name="Second", plan="enterprise")
    foreign = Organization.objects.create(name="Foreign")
    Membership.objects.create(user=user, organization=second)

    def seen(picked: str) -> str:
        return require(request_of(user, **{SESSION_ORGANIZATION: picked}), READ).organization_id

    assert require(request_of(user), READ).organization_id == str(organization.pk)
    assert seen(str(second.pk)) == str(second.pk)
    assert seen(str(foreign.pk)) == str(organization.pk)
    assert seen("no UUID") == str(organization.pk)


def deactivate(user: User) -> None:
    User.objects.update(is_active=False)


def give_a_new_password(user: User) -> None:
    user.set_password("another long password")
    user.save()


def disable_the_organization(user: User) -> None:
    Organization.objects.update(disabled_at=clock.now())


@pytest.mark.parametrize(
    "change",
    [deactivate, give_a_new_password, disable_the_organization],
    ids=lambda it: it.__name__,
)
def test_a_session_ends_at_once_with(user: User, change: Callable[[User], None]) -> None:
    request = request_of(user)
    assert require(request, READ)
    change(user)
    with pytest.raises(InvalidCredential):
        require(request, READ)


def test_no_other_request_has_a_caller(organization: Organization, user: User) -> None:
    inference = keys.mint(organization, Scope.INFERENCE).secret
    refused = {
        "an inference key": with_key(request_of(), inference),
        "neither key nor session": request_of(),
        "an empty key beside a session": with_key(request_of(user), ""),
        "a wrong key beside a session": with_key(request_of(user), "wrong"),
        **{method: request_of(user, method) for method in ("POST", "PUT", "PATCH", "DELETE")},
    }
    for name, request in refused.items():
        with pytest.raises(InvalidCredential):
            pytest.fail(f"{name}: {require(request, READ)}")
    with pytest.raises(InvalidCredential):
        require(request_of(user), READ, session=False)
