"""Roles of members: by owners in the console, by operators in the admin and over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts import members
from accounts.models import AuditEntry, Membership, Organization, Role, User
from tests.support.pages.admin_forms import logged_in, operator
from tests.support.pages.console import words

pytestmark = pytest.mark.django_db
RIGHTS = ("accounts.view_organization", "accounts.view_membership", members.APPOINT)
PAGE = "/console/acme/organization"


@pytest.fixture
def acme() -> Organization:
    return Organization.objects.create(name="Acme")


def join(organization: Organization, name: str, role: Role = Role.MEMBER) -> Membership:
    user = User.objects.create_user(f"{name}@acme.example", "correct horse battery")
    return Membership.objects.create(user=user, organization=organization, role=role)


def role_of(membership: Membership) -> str:
    return Membership.objects.get(pk=membership.pk).role


def send(client: Client, membership: Membership, role: Role) -> str:
    """Send the form of the console; return what the page says then."""
    address = f"{PAGE}/members/{membership.pk}"
    return words(client.post(address, {"role": role}, follow=True).content.decode())


def verbs() -> list[tuple[str, str]]:
    """The audit log's entries of changed roles, the first one first."""
    made = AuditEntry.objects.filter(verb__startswith="made a").order_by("pk")
    return list(made.values_list("actor", "verb"))


def test_owners_make_owners_and_members_and_each_change_is_recorded(acme: Organization) -> None:
    ann, bo = join(acme, "ann", Role.OWNER), join(acme, "bo")
    client = logged_in(ann.user)
    assert "ann@acme.example Owner" in words(client.get(PAGE).content.decode())

    assert "bo@acme.example is an owner of Acme." in send(client, bo, Role.OWNER)
    assert "ann@acme.example is a member of Acme." in send(client, ann, Role.MEMBER)

    assert (role_of(ann), role_of(bo)) == (Role.MEMBER, Role.OWNER)
    actor = "ann@acme.example"
    assert verbs() == [(actor, "made an owner"), (actor, "made a member")]
    assert "Make owner" not in client.get(PAGE).content.decode()


def test_the_last_owner_who_can_log_in_stays_one(acme: Organization) -> None:
    ann, gone = join(acme, "ann", Role.OWNER), join(acme, "gone", Role.OWNER)
    User.objects.filter(pk=gone.user_id).update(is_active=False)
    client = logged_in(ann.user)

    assert "ann@acme.example is the last owner of Acme." in send(client, ann, Role.MEMBER)
    send(client, gone, Role.MEMBER)

    assert (role_of(ann), role_of(gone)) == (Role.OWNER, Role.MEMBER)


def test_members_see_roles_and_change_none(acme: Organization) -> None:
    join(acme, "ann", Role.OWNER)
    bo = join(acme, "bo")
    client = logged_in(bo.user)

    page = client.get(PAGE).content.decode()

    assert "ann@acme.example Owner bo@acme.example Member" in words(page)
    assert "never logged in" not in page
    assert client.post(f"{PAGE}/members/{bo.pk}", {"role": "owner"}).status_code == 404
    assert role_of(bo) == Role.MEMBER


def test_owners_change_no_member_of_another_organization(acme: Organization) -> None:
    ann = join(acme, "ann", Role.OWNER)
    other = join(Organization.objects.create(name="Other"), "eve")

    answer = logged_in(ann.user).post(f"{PAGE}/members/{other.pk}", {"role": "owner"})

    assert answer.status_code == 404
    assert role_of(other) == Role.MEMBER


@pytest.mark.parametrize("may_view", [True, False])
def test_a_visiting_operator_sees_members_with_the_right_to(
    acme: Organization, may_view: bool
) -> None:
    join(acme, "ann", Role.OWNER)
    rights = ["accounts.view_organization", "accounts.open_console"]
    client = logged_in(operator(*rights, *(["accounts.view_membership"] if may_view else [])))
    client.post(f"/admin/customer/{acme.pk}/console/")

    page = client.get(PAGE).content.decode()

    assert "Content of failed requests" in page
    assert ("ann@acme.example" in page) is may_view


def appoint(client: Client, membership: Membership, role: Role = Role.OWNER) -> Any:
    """Send the form of the customer's page in the admin."""
    return client.post(f"/admin/member/{membership.pk}/role/", {"role": role}, follow=True)


def test_an_operator_with_the_right_gives_an_organization_its_first_owner_only(
    acme: Organization,
) -> None:
    ann, bo = join(acme, "ann"), join(acme, "bo")
    client = logged_in(operator(*RIGHTS))
    page = client.get(f"/admin/customer/{acme.pk}/").content.decode()
    assert page.count("Make owner") == 2
    assert "None is an owner" in page

    assert appoint(client, ann).status_code == 200
    assert "Acme has an owner" in words(appoint(client, bo).content.decode())
    assert appoint(client, ann, Role.MEMBER).status_code == 403

    assert (role_of(ann), role_of(bo)) == (Role.OWNER, Role.MEMBER)
    shown = words(client.get(f"/admin/customer/{acme.pk}/").content.decode())
    assert "ann@acme.example , owner, never logged in" in shown
    assert "Make owner" not in shown
    assert [verb for _, verb in verbs()] == ["made an owner"]


@pytest.mark.parametrize("lacking", RIGHTS)
def test_without_one_of_the_rights_no_operator_changes_a_role(
    acme: Organization, lacking: str
) -> None:
    ann = join(acme, "ann")
    client = logged_in(operator(*(each for each in RIGHTS if each != lacking)))

    assert appoint(client, ann).status_code == 403
    assert client.get(f"/admin/member/{ann.pk}/role/").status_code in (403, 405)
    assert role_of(ann) == Role.MEMBER


def test_a_superuser_sets_any_role_also_that_of_the_last_owner(acme: Organization) -> None:
    ann, bo = join(acme, "ann", Role.OWNER), join(acme, "bo")
    client = logged_in(User.objects.create_superuser("root@svc.example", "x"))

    appoint(client, bo)
    appoint(client, ann, Role.MEMBER)
    appoint(client, bo, Role.MEMBER)

    assert (role_of(ann), role_of(bo)) == (Role.MEMBER, Role.MEMBER)


def test_roles_are_shown_on_the_pages_of_user_and_organization(acme: Organization) -> None:
    ann = join(acme, "ann", Role.OWNER)
    client = logged_in(
        operator("accounts.view_user", "accounts.view_organization", "accounts.view_membership")
    )

    for page in (f"user/{ann.user_id}", f"organization/{acme.pk}"):
        assert "Owner" in words(client.get(f"/admin/accounts/{page}/change/").content.decode())


def test_a_member_who_is_the_owner_already_can_be_appointed_again(acme: Organization) -> None:
    ann, bo = join(acme, "ann"), join(acme, "bo")
    for _ in range(2):
        members.appoint(ann)

    with pytest.raises(ValidationError, match="Acme has an owner"):
        members.appoint(bo)
    assert len(verbs()) == 1


def test_a_role_that_there_is_not_changes_nothing(acme: Organization) -> None:
    ann, bo = join(acme, "ann", Role.OWNER), join(acme, "bo", Role.OWNER)
    for sent in ({}, {"role": "Owner"}):
        answer = logged_in(ann.user).post(f"{PAGE}/members/{bo.pk}", sent)
        assert answer.status_code == 400
    assert role_of(bo) == Role.OWNER


def test_who_was_removed_meanwhile_gets_no_role(acme: Organization) -> None:
    bo = join(acme, "bo")
    Membership.objects.filter(pk=bo.pk).delete()
    with pytest.raises(ValidationError, match="no member of Acme any more"):
        members.appoint(bo)
