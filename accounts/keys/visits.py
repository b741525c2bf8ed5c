"""Visits: an operator reads the console of an organization, as a reader without any other right.

A visit is kept in the operator's session, so it ends at the logout, and after an hour at most. During
it the console has no other organization, and refuses whatever changes or sends something:
``accounts.console.base`` for pages, ``accounts.console.sessions`` for what the pages' scripts send.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.http import HttpRequest

from accounts.audit import trail
from accounts.models import Organization, User
from core.clock import iso_milliseconds

PERMISSION: Final = "accounts.open_console"
SECONDS: Final = 3600.0
_SESSION: Final = "console_visit"
_VISIT: Final = "svc_console_visit"
"""The attribute of a request that has its visit, or None, once ``current`` was called."""


@dataclass(frozen=True, slots=True)
class Visit:
    """An operator in the console of ``organization``, until a moment."""

    organization: Organization
    until: datetime


def begin(request: HttpRequest, organization: Organization) -> None:
    """Let the session of ``request`` read the console of ``organization``, and record it there.

    The caller has checked ``PERMISSION``.
    """
    until = time.time() + SECONDS
    ends = iso_milliseconds(datetime.fromtimestamp(until, UTC))
    trail.record("console opened to read", organization, {"until": (None, ends)})
    request.session[_SESSION] = {"organization_id": str(organization.pk), "until": until}


def end(request: HttpRequest) -> None:
    """End the visit of the session, if there is one."""
    request.session.pop(_SESSION, None)


def current(request: HttpRequest, user: User) -> Visit | None:
    """The visit of the session of ``request``; None without one, and when it or its right has ended.

    Raises ``django.db.Error``.
    """
    visit = _read(request, user)
    setattr(request, _VISIT, visit)
    return visit


def visit_of(request: HttpRequest) -> Visit | None:
    """What ``current`` found for ``request``; None before."""
    visit: Visit | None = getattr(request, _VISIT, None)
    return visit


def _read(request: HttpRequest, user: User) -> Visit | None:
    kept = request.session.get(_SESSION)
    if not isinstance(kept, dict) or kept["until"] <= time.time():
        return None
    if not (user.is_active and user.is_staff and user.has_perm(PERMISSION)):
        return None
    organization = Organization.objects.filter(pk=kept["organization_id"]).first()
    if organization is None:
        return None
    return Visit(organization, datetime.fromtimestamp(kept["until"], UTC))
