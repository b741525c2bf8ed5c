"""The roles of members: owners change them, and operators give an owner to an organization that has none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.core.exceptions import BadRequest, ValidationError
from django.db import transaction

from accounts.models import Membership, Organization, Role, User

APPOINT: Final = "accounts.appoint_owner"
"""The permission to make a member the owner of an organization that has none."""


def chosen_role(role: str | None) -> Role:
    """The role of that value, as a form sends it. Raises ``BadRequest`` for any other text."""
    if role not in Role.values:
        raise BadRequest("Choose a role.")
    return Role(role)


def has_owner(organization: Organization) -> bool:
    """Whether a member is an owner, also one who is disabled."""
    return Membership.objects.filter(organization=organization, role=Role.OWNER).exists()


@transaction.atomic
def set_role(membership: Membership, role: Role, *, keep_owner: bool = True) -> None:
    """Give a member a role.

    With ``keep_owner`` an owner who can log in has to remain: raises ``ValidationError`` otherwise.
    """
    row = _locked(membership)
    if row.role == role:
        return
    if keep_owner and role != Role.OWNER:
        owners = Membership.objects.filter(organization=row.organization, role=Role.OWNER)
        if not owners.exclude(pk=row.pk).filter(user__is_active=True).exists():
            raise ValidationError(
                f"{row.user} is the last owner of {row.organization}. Make another member an owner first."
            )
    _store(row, role)


@transaction.atomic
def appoint(membership: Membership) -> None:
    """Make a member the owner of an organization that has none.

    Raises ``ValidationError`` where another member is one: then owners alone make owners.
    """
    row = _locked(membership)
    if row.role == Role.OWNER:
        return
    if has_owner(row.organization):
        raise ValidationError(
            f"{row.organization} has an owner, who makes other members owners in the console."
        )
    _store(row, Role.OWNER)


def appoint_in(user: User, organizations: Iterable[Organization]) -> None:
    """Make ``user`` the owner of ``organizations``, as ``appoint`` does, and of no other one.

    Raises ``ValidationError`` where he is no member, or owns another one.
    """
    chosen = set(organizations)
    rows = {row.organization: row for row in user.memberships.select_related("organization")}
    for organization in sorted(chosen - set(rows), key=str):
        raise ValidationError(f"{user} is no member of {organization}.")
    for organization, row in rows.items():
        if row.role == Role.OWNER and organization not in chosen:
            raise ValidationError(
                f"{user} is an owner of {organization}. Owners make owners members, in the console."
            )
    for organization in sorted(chosen, key=str):
        appoint(rows[organization])


def _locked(membership: Membership) -> Membership:
    """Lock the memberships of the organization and return the row of ``membership``.

    Raises ``ValidationError`` where it was removed.
    """
    members = Membership.objects.select_related("user", "organization").order_by("pk")
    locked = members.select_for_update(of=("self",))
    rows = locked.filter(organization_id=membership.organization_id)
    found = next((row for row in rows if row.pk == membership.pk), None)
    if found is None:
        raise ValidationError(
            f"{membership.user} is no member of {membership.organization} any more."
        )
    return found


def _store(row: Membership, role: Role) -> None:
    row.role = role
    row.save(update_fields=["role"])
