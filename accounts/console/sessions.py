"""Finds the person behind a request that a consumer answers, by the console's session.

Django's own middleware decides, as it does for pages: the session, the CSRF token and the Origin.
A WebSocket carries no token, so only its Origin is checked (RFC 6455, section 10.2). The lookups have
threads of their own, of which invented sessions get a part (``accounts.console.session_lookups``).
"""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from accounts.console import session_lookups
from accounts.keys import visits
from accounts.keys.authentication import session_organization
from accounts.keys.callers import cookies_of, remember_session
from accounts.keys.consumer import KeyConsumer
from accounts.keys.principal import Principal, RateLimits, SpeechLimits, priority_of
from accounts.models import Organization, Scope, User
from core.errors import ApiError, InternalError, InvalidCredential, ServerOverloaded
from core.ids import NIL_UUID

_SESSION_SECONDS: Final = 3.0
"""How long a WebSocket trusts the last lookup of its session."""
_UNCONFIRMED_SECONDS: Final = 60.0
"""How long a WebSocket goes on while its session's lookups are refused for lack of a turn."""
_SCHEMES: Final = {"ws": "http", "wss": "https"}


class SessionEnded(InvalidCredential):
    """No valid session, or its user does not belong to the organization of the page."""

    default_message = "Your session has ended. Reload the page and log in again."
    cause = "The session of the console ended while its page was open."
    cure = "Reload the page and log in again."

    def __init__(self) -> None:
        # Without the header that asks for a key.
        ApiError.__init__(self)


class StaleForm(ApiError):
    """The CSRF token or the Origin is not that of the console."""

    status = 403
    type = "invalid_request_error"
    default_message = "This was not sent from a current page of the console. Reload the page."
    cause = "The request did not come from a current page of the console."
    cure = "Reload the page."


class OnlyRead(ApiError):
    """An operator reads the console (``accounts.keys.visits``) and cannot send anything from it."""

    status = 403
    type = "invalid_request_error"
    default_message = "You read this console as an operator. Nothing was sent. Leave it first."
    cause = "An operator, who opened the console to read it, sent a request from it."
    cure = "Leave the console, and send the request from your own."


class Sessions:
    """Looks up sessions."""

    async def principal_of(self, scope: dict[str, Any], wanted: Scope) -> Principal:
        """Return the caller of an ASGI request, as one with a key of the scope ``wanted``.

        The organization is the one that the query names. Raises ``SessionEnded``, ``StaleForm``,
        ``OnlyRead``, ``ServerOverloaded``, and ``InternalError`` when the database does not answer.
        """
        if not cookies_of(scope).get(settings.SESSION_COOKIE_NAME):
            raise SessionEnded
        return await session_lookups.run(scope, lambda: _principal_of(scope, wanted))


sessions = Sessions()
"""The lookups of this process."""


class SessionConsumer(KeyConsumer):
    """Takes the console's session instead of a key; put it before the consumer of the API's path.

    Body, answer, limits and row are those of the API; ``scopes`` has one scope.
    """

    async def authenticate(self) -> Principal:
        (wanted,) = self.scopes
        return await sessions.principal_of(self.scope, wanted)


class OpenSession:
    """The caller of a WebSocket, looked up again when the last lookup is some seconds old.

    So a log-out, a disabled organization and new limits reach an open WebSocket. While the database does
    not answer, the last caller stays; while too many lookups wait, for a minute, since those may be the
    same person's.
    """

    def __init__(self, scope: dict[str, Any], wanted: Scope) -> None:
        self._scope = scope
        self._wanted = wanted
        self._found: tuple[float, Principal] | None = None
        self._confirmed = 0.0
        """When a lookup last succeeded, or the database did not answer."""

    async def __call__(self) -> Principal:
        """Return the caller. Raises what ``Sessions.principal_of`` raises."""
        now = time.monotonic()
        if self._found is not None and now - self._found[0] < _SESSION_SECONDS:
            return self._found[1]
        try:
            principal = await sessions.principal_of(self._scope, self._wanted)
            self._confirmed = now
        except InternalError:
            if self._found is None:
                raise
            self._confirmed = now
            principal = self._found[1]
        except ServerOverloaded:
            if self._found is None or now - self._confirmed > _UNCONFIRMED_SECONDS:
                raise
            principal = self._found[1]
        if self._found is not None and principal.organization_id != self._found[1].organization_id:
            # What is spoken belongs to the first. Only an address that names none can change.
            raise SessionEnded
        self._found = now, principal
        return principal


def _principal_of(scope: dict[str, Any], wanted: Scope) -> Principal:
    request = _request_of(scope)
    if not (_has_own_origin(request) if scope["type"] == "websocket" else _has_token(request)):
        raise StaleForm
    SessionMiddleware(_nothing).process_request(request)
    user = get_user(request)
    organization = session_organization(request, user) if isinstance(user, User) else None
    if organization is None:
        raise SessionEnded
    if wanted is not Scope.READ and visits.visit_of(request) is not None:
        raise OnlyRead
    remember_session(request.session.session_key or "", str(organization.pk))
    return _principal(organization, wanted)


def _request_of(scope: dict[str, Any]) -> ASGIRequest:
    if scope["type"] == "websocket":
        scheme = scope.get("scheme", "ws")
        scope = {**scope, "method": "GET", "scheme": _SCHEMES.get(scheme, scheme)}
    request = ASGIRequest(scope, BytesIO())
    if settings.SVC_HTTPS_ONLY:
        # As svc_project.middleware.HttpsOnlyMiddleware does for pages.
        request.META.setdefault("HTTP_X_FORWARDED_PROTO", "https")
    return request


def _has_token(request: HttpRequest) -> bool:
    csrf = CsrfViewMiddleware(_nothing)
    csrf.process_request(request)
    return csrf.process_view(request, _nothing, (), {}) is None


def _has_own_origin(request: HttpRequest) -> bool:
    return request.META.get("HTTP_ORIGIN") == f"{request.scheme}://{request.get_host()}"


def _principal(organization: Organization, wanted: Scope) -> Principal:
    """A caller without a key: its rows are unattributed, its limits those of the organization."""
    return Principal(
        organization_id=str(organization.pk),
        api_key_id=str(NIL_UUID),
        scope=wanted,
        plan=organization.plan,
        organization_limits=RateLimits(
            organization.requests_per_minute, organization.tokens_per_minute
        ),
        key_limits=RateLimits(None, None),
        speech_limits=SpeechLimits(
            organization.speech_requests_per_minute, organization.speech_characters_per_day
        ),
        captures_allowed=False,
        failed_content_hours=organization.failed_content_hours
        if organization.captures_allowed
        else 0,
        priority=priority_of(organization.priority),
    )


def _nothing(request: HttpRequest) -> HttpResponse:
    return HttpResponse()
