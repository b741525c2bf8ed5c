"""Finds the caller of a DRF view: a key, or a person with a console session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib.auth import get_user
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.request import Request

from accounts.keys import visits
from accounts.keys.keyring import keyring
from accounts.models import Membership, Organization, Scope, User
from core.errors import InvalidCredential

SESSION_ORGANIZATION = "organization_id"
"""The session's key under which the console keeps the organization whose page it showed last."""

SHOWN_ORGANIZATION: Final = "svc_shown_organization"
"""The attribute of a request that has the id of the organization whose pages it read, or ``None``."""

KEY_ORGANIZATION: Final = "svc_key_organization"
"""The attribute of a request that has the id of the organization whose key it came with."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    """The organization whose usage a view may show. Ids are UUID texts.

    ``api_key_id`` is ``None`` for a console session, ``user_id`` is ``None`` for a key.
    """

    organization_id: str
    plan: str
    api_key_id: str | None = None
    user_id: str | None = None


def require(
    request: HttpRequest | Request, scopes: frozenset[Scope], *, session: bool = True
) -> Caller:
    """The caller of ``request``: a key with one of ``scopes``, or, with ``session``, a console user.

    An ``Authorization`` header decides alone: a wrong one is refused whatever cookies are sent.
    A session opens reading methods only, because DRF views carry no CSRF check. Raises
    ``InvalidCredential``, and ``InternalError`` when the database does not answer about a key.
    """
    http_request = request._request if isinstance(request, Request) else request
    authorization = request.META.get("HTTP_AUTHORIZATION")
    if authorization is not None:
        principal = keyring.authenticate_sync(authorization, scopes)
        setattr(http_request, KEY_ORGANIZATION, principal.organization_id)
        return Caller(principal.organization_id, principal.plan, api_key_id=principal.api_key_id)
    if session and request.method in SAFE_METHODS:
        # Not request.user: DRF replaces it with the result of its own authenticators.
        user = get_user(http_request)
        if isinstance(user, User) and (organization := session_organization(http_request, user)):
            return Caller(str(organization.pk), organization.plan, user_id=str(user.pk))
    raise InvalidCredential


def session_organization(request: HttpRequest, user: User) -> Organization | None:
    """The organization that a request of ``user`` is about, as ``organization_of`` has it.

    ``None`` when ``shown_organizations`` is empty, or without the one that is asked for. A page names it, by
    its id, in the query of what its scripts and downloads ask for: two pages of a browser may show two
    organizations.
    """
    asked = request.GET.get("organization")
    return organization_of(request, shown_organizations(request, user), asked)


def shown_organizations(request: HttpRequest, user: User) -> list[Organization]:
    """The organizations whose console ``request`` may show: those of ``user``, or the one visited."""
    visit = visits.current(request, user)
    return open_organizations(user) if visit is None else [visit.organization]


def open_organizations(user: User) -> list[Organization]:
    """The organizations that ``user`` belongs to, disabled ones left out, first joined first."""
    memberships = (
        Membership.objects.filter(
            Q(organization__disabled_at=None) | Q(organization__disabled_at__gt=timezone.now()),
            user=user,
        )
        .select_related("organization")
        .order_by("pk")
    )
    return [membership.organization for membership in memberships]


def organization_of(
    request: HttpRequest, organizations: Sequence[Organization], asked: str | None = None
) -> Organization | None:
    """The one of a person's ``organizations`` with the id ``asked``; ``None`` for any other id.

    Without ``asked``, the one whose page this session showed last, else the first. The request
    remembers it (``SHOWN_ORGANIZATION``).
    """
    own = {str(organization.pk): organization for organization in organizations}
    if asked is not None:
        found = own.get(asked)
    else:
        last = request.session.get(SESSION_ORGANIZATION, "")
        found = own.get(last) or next(iter(organizations), None)
    setattr(request, SHOWN_ORGANIZATION, None if found is None else str(found.pk))
    return found
