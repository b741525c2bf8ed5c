"""To whom the pages of a session count: the organization that it shows, else its user."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from accounts.keys.callers import Caller, caller_of
from accounts.keys.keys import mint
from accounts.models import Membership, Organization, Scope, User
from tests.support.pages.admin_forms import logged_in

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


@pytest.fixture
def member() -> User:
    return User.objects.create_user("member@example.com", PASSWORD)


def joined(user: User, name: str) -> Organization:
    organization = Organization.objects.create(name=name)
    Membership.objects.create(user=user, organization=organization)
    return organization


def share_of(client: Client) -> Caller:
    """Whose share the next request of ``client`` uses."""
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    return caller_of({"headers": [(b"cookie", cookie.encode())], "client": ("192.0.2.1", 1)})


def of(organization: Organization) -> Caller:
    return Caller(f"organization:{organization.pk}", is_known=True)


@pytest.mark.parametrize("path", ["/console/acme/usage", "/v1/usage"])
def test_a_session_counts_to_the_organization_that_it_reads(member: User, path: str) -> None:
    acme = joined(member, "Acme")
    client = logged_in(member)
    assert client.get(path).status_code == 200
    assert share_of(client) == of(acme)


def test_a_key_counts_to_its_organization_as_its_members_do(member: User) -> None:
    acme = joined(member, "Acme")
    header = f"Bearer {mint(acme, Scope.READ).secret}"
    assert Client(headers={"authorization": header}).get("/v1/usage").status_code == 200

    scope = {"headers": [(b"authorization", header.encode())], "client": ("192.0.2.1", 1)}
    assert caller_of(scope) == of(acme)


def test_a_login_counts_to_the_organization_before_the_first_page(member: User) -> None:
    """Else logging in anew would give a member a share of its own for one request each time."""
    acme = joined(member, "Acme")
    client = Client()
    form = {"username": member.email, "password": PASSWORD}
    assert client.post("/console/login", form).status_code == 302
    assert share_of(client) == of(acme)


def test_a_member_of_two_organizations_counts_to_the_one_in_use(member: User) -> None:
    joined(member, "Acme")
    other = joined(member, "Other")
    client = logged_in(member)
    client.get("/console/other/usage")
    assert share_of(client) == of(other)
    # A page that shows none changes nothing.
    client.get("/admin/login/")
    assert share_of(client) == of(other)


def test_a_user_without_an_organization_counts_alone(member: User) -> None:
    acme = joined(member, "Acme")
    client = logged_in(member)
    client.get("/console/usage")
    Membership.objects.filter(organization=acme).delete()
    assert client.get("/console/usage").status_code == 403
    assert share_of(client) == Caller(f"user:{member.pk}", is_known=True)


def test_an_operator_counts_alone_in_the_admin() -> None:
    operator = User.objects.create_superuser("operator@example.com", PASSWORD)
    joined(operator, "Acme")
    client = logged_in(operator)
    assert client.get("/admin/").status_code == 200
    assert share_of(client) == Caller(f"user:{operator.pk}", is_known=True)
