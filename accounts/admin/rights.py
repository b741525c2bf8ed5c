"""Compares the permissions and memberships of two users.

An operator cannot grant, or take over, more than he holds.
"""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.db.models import Q

from accounts.models import Membership, User

ADD_MEMBERSHIP = "accounts.add_membership"


def is_stronger(user: User, than: User) -> bool:
    """Whether ``user`` may do in the admin what ``than`` may not, or could if he were active."""
    if than.is_superuser:
        return False
    return user.is_superuser or bool(_permissions(user) - _permissions(than))


def reads_more(user: User, than: User) -> bool:
    """Whether ``user`` is a member of an organization that ``than`` neither is in nor can join."""
    if than.has_perm(ADD_MEMBERSHIP):
        return False
    own = Membership.objects.filter(user=than).values("organization_id")
    return Membership.objects.filter(user=user).exclude(organization_id__in=own).exists()


def _permissions(user: User) -> set[int]:
    """Django's own look-up finds none for a user who is switched off, and may be switched on."""
    held = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    return set(held.values_list("pk", flat=True))
