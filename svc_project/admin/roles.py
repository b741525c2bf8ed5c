"""The role of a customer's member, which operators change on the customer's page."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts import members
from accounts.models import Membership, Role, User

RIGHTS = ("accounts.view_organization", "accounts.view_membership", members.APPOINT)
"""What an operator needs to give an organization its first owner."""


@require_POST
def change(request: HttpRequest, membership_id: int) -> HttpResponse:
    """Give a member the role of the form.

    Superusers set any role, holders of ``RIGHTS`` appoint the first owner. Raises ``PermissionDenied``,
    ``Http404``, ``BadRequest``.
    """
    if not request.user.has_perms(RIGHTS):
        raise PermissionDenied
    membership = get_object_or_404(Membership, pk=membership_id)
    role = members.chosen_role(request.POST.get("role"))
    try:
        if isinstance(request.user, User) and request.user.is_superuser:
            members.set_role(membership, role, keep_owner=False)
        elif role == Role.OWNER:
            members.appoint(membership)
        else:
            raise PermissionDenied
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"{membership.user}: {role.label.lower()}.")
    return redirect("admin:customer", membership.organization_id)
