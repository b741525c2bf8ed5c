"""Callers of DRF views: keys of the right scope and console sessions, no others."""

from __future__ import annotations

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

READ = frozenset({Scope.READ})

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(organization: Organization) -> User:
    user = User.objects.create_user("ann@example.com", "correct horse battery")
    Membership.objects.create(user=user, organization=organization)
    return user


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


def test_an_inference_key_does_not_read_usage(organization: Organization) -> None:
    new = keys.mint(organization, Scope.INFERENCE)
    with pytest.raises(InvalidCredential):
        require(with_key(request_of(), new.secret), READ)


def test_a_console_session_is_a_caller_also_behind_drf(
    organization: Organization, user: User
) -> None:
    expected = Caller(str(organization.pk), "standard", user_id=str(user.pk))
    assert require(request_of(user), READ) == expected
    drf_request = Request(request_of(user))
    assert not drf_request.user, "DRF has replaced Django's user by now"
    assert require(drf_request, READ) == expected


def test_a_request_without_key_or_session_is_refused() -> None:
    with pytest.raises(InvalidCredential):
        require(request_of(), READ)


def test_a_wrong_key_is_refused_even_with_a_session(user: User) -> None:
    for secret in ("", "wrong"):
        with pytest.raises(InvalidCredential):
            require(with_key(request_of(user), secret), READ)


def test_a_session_is_refused_where_only_keys_count(user: User) -> None:
    with pytest.raises(InvalidCredential):
        require(request_of(user), READ, session=False)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_session_opens_no_writing_method(user: User, method: str) -> None:
    with pytest.raises(InvalidCredential):
        require(request_of(user, method), READ)


def test_a_deactivated_user_is_refused_at_once(user: User) -> None:
    request = request_of(user)
    User.objects.update(is_active=False)
    with pytest.raises(InvalidCredential):
        require(request, READ)


def test_a_session_ends_with_a_new_password(user: User) -> None:
    request = request_of(user)
    user.set_password("another long password")
    user.save()
    with pytest.raises(InvalidCredential):
        require(request, READ)


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


def test_a_disabled_organization_opens_nothing_to_its_members(
    organization: Organization, user: User
) -> None:
    organization.disabled_at = clock.now()
    organization.save()
    with pytest.raises(InvalidCredential):
        require(request_of(user), READ)
