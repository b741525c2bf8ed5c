"""The operators' way into an organization's console, to read it, and back."""

from __future__ import annotations

import uuid

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from accounts.keys import visits
from accounts.models import Organization


@require_POST
def begin(request: HttpRequest, organization_id: uuid.UUID) -> HttpResponse:
    """Open the console of an organization. Raises ``PermissionDenied``, ``Http404``."""
    if not request.user.has_perms((visits.PERMISSION, "accounts.view_organization")):
        raise PermissionDenied
    visits.begin(request, get_object_or_404(Organization, pk=organization_id))
    return redirect("console")


@require_POST
def end(request: HttpRequest, organization_id: uuid.UUID) -> HttpResponse:
    """Leave the console, to the page of the customer."""
    visits.end(request)
    return redirect("admin:customer", organization_id)
