"""Identifies the caller of a request from memory, without the database.

It does not authenticate a caller: it only decides whose share of the server a request uses.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from accounts.keys.keyring import keyring
from svc_project.lib.api.client_address import client_network

_MOST_SESSIONS = 10_000
_REMEMBERED_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the share that a request uses.

    ``is_known``: it came with a key or a session that was valid before. Such a caller is named
    after its organization (a key) or user (a session), a stranger after its network.
    """

    name: str
    is_known: bool


class KnownSessions:
    """Sessions that recently belonged to a user. Thread-safe; stores no session id."""

    def __init__(self) -> None:
        self._users: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def remember(self, session_key: str, user_id: str) -> None:
        """Record that this session belongs to ``user_id``."""
        digest = sha256(session_key.encode()).digest()
        self._users[digest] = user_id, time.monotonic()
        self._users.move_to_end(digest)
        if len(self._users) > _MOST_SESSIONS:
            self._users.popitem(last=False)

    def user_of(self, session_key: str) -> str | None:
        """The user that this session was last seen with, within a quarter of an hour."""
        found = self._users.get(sha256(session_key.encode()).digest())
        if found is None or time.monotonic() - found[1] > _REMEMBERED_SECONDS:
            return None
        return found[0]


known_sessions = KnownSessions()
"""The sessions that this process has seen."""


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The caller of an ASGI request.

    An ``Authorization`` header decides alone, as it does in the views.
    """
    authorization: bytes | None = None
    cookies: list[str] = []
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = value
        elif name == b"cookie":
            cookies.append(value.decode("latin-1"))
    if authorization is not None:
        organization_id = keyring.organization_of(authorization)
        if organization_id is not None:
            return Caller(f"organization:{organization_id}", is_known=True)
    elif cookies:
        session_key = parse_cookie(";".join(cookies)).get(settings.SESSION_COOKIE_NAME)
        user_id = known_sessions.user_of(session_key) if session_key else None
        if user_id is not None:
            return Caller(f"user:{user_id}", is_known=True)
    return Caller(client_network(scope), is_known=False)
