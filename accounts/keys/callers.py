"""Identifies the caller of a request from memory, without the database.

It does not authenticate a caller: it only decides whose share of the server a request uses.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import Error
from django.http import HttpRequest, parse_cookie

from accounts.keys.authentication import KEY_ORGANIZATION, SHOWN_ORGANIZATION, session_organization
from accounts.keys.keyring import keyring
from accounts.models import User
from core.api.client_address import client_network

_MOST_CALLERS = 10_000
_REMEMBERED_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the share that a request uses.

    ``is_known``: it came with a key or a session that was valid before. Such a caller is named
    after its organization, or, with a session that shows none, its user; a stranger after its
    network.
    """

    name: str
    is_known: bool


class KnownCallers:
    """Callers whose key or session a view has recently found valid. Thread-safe.

    They are found by the SHA-256 of the credential, which itself is not stored.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def remember(self, digest: bytes, name: str) -> None:
        """Record that the credential with this digest belongs to the caller ``name``."""
        self._names.pop(digest, None)
        self._names[digest] = name, time.monotonic()
        if len(self._names) > _MOST_CALLERS:
            self._names.popitem(last=False)

    def name_of(self, digest: bytes) -> str | None:
        """The caller with this credential, if it was valid within a quarter of an hour."""
        found = self._names.get(digest)
        if found is None or time.monotonic() - found[1] > _REMEMBERED_SECONDS:
            return None
        return found[0]


known_callers = KnownCallers()
"""The callers that this process has seen."""

_ORGANIZATION: Final = "organization"

RECOGNIZED: Final = "svc.recognized"
"""The key of the digest and the name of a request's valid caller in its ASGI scope."""


def recognize(request: HttpRequest) -> None:
    """Remember the caller of an answered request, if its key or session was valid."""
    found: tuple[bytes, str] | None = None
    session = getattr(request, "session", None)
    if authorization := request.META.get("HTTP_AUTHORIZATION"):
        if organization_id := getattr(request, KEY_ORGANIZATION, None):
            credential = authorization.encode("latin-1", "replace")
            found = _digest(credential), _organization(organization_id)
    # A session that no view used has not been read from the database.
    elif session is not None and session.accessed and (user_id := session.get(SESSION_KEY)):
        digest = _digest((session.session_key or "").encode())
        found = digest, _name_of_session(request, digest, user_id)
    if found is not None:
        known_callers.remember(*found)
        getattr(request, "scope", {})[RECOGNIZED] = found


def _name_of_session(request: HttpRequest, digest: bytes, user_id: str) -> str:
    """The organization whose pages this session reads, else its user.

    A page that shows no organization, such as the login, changes nothing: otherwise each new session
    would have a share of its own until its first page.
    """
    own = _user(user_id)
    if not hasattr(request, SHOWN_ORGANIZATION):
        user = getattr(request, "user", None)
        if not isinstance(user, User) or user.is_staff:
            return own
        if (known := known_callers.name_of(digest)) is not None:
            return known
        try:
            session_organization(request, user)
        except Error:
            return own
    shown: str | None = getattr(request, SHOWN_ORGANIZATION)
    return own if shown is None else _organization(shown)


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The caller of an ASGI request.

    An ``Authorization`` header decides alone, as it does in the views.
    """
    authorization = next(
        (value for name, value in reversed(scope["headers"]) if name == b"authorization"), None
    )
    if authorization is None:
        return caller_by_session(scope)
    organization_id = keyring.organization_of(authorization)
    if organization_id is not None:
        return Caller(_organization(organization_id), is_known=True)
    return _known_or_stranger(authorization, scope)


def organization_of(caller: Caller) -> str | None:
    """The id of the organization that a caller is named after, or None."""
    kind, _, organization_id = caller.name.partition(":")
    return organization_id if caller.is_known and kind == _ORGANIZATION else None


def caller_by_session(scope: Mapping[str, Any]) -> Caller:
    """The caller of an ASGI request that is answered by session alone, whatever else it has."""
    session_key = cookies_of(scope).get(settings.SESSION_COOKIE_NAME, "")
    return _known_or_stranger(session_key.encode(), scope)


def remember_session(session_key: str, organization_id: str) -> None:
    """Record that the session reads the organization."""
    known_callers.remember(_digest(session_key.encode()), _organization(organization_id))


def cookies_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The cookies of an ASGI request."""
    sent = (value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie")
    return parse_cookie(";".join(sent))


def _known_or_stranger(credential: bytes, scope: Mapping[str, Any]) -> Caller:
    name = known_callers.name_of(_digest(credential)) if credential else None
    if name is not None:
        return Caller(name, is_known=True)
    return Caller(client_network(scope), is_known=False)


def _user(user_id: object) -> str:
    return f"user:{user_id}"


def _organization(organization_id: str) -> str:
    return f"{_ORGANIZATION}:{organization_id}"


def _digest(credential: bytes) -> bytes:
    return sha256(credential).digest()
