"""What every Django response carries on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase
from django.urls import set_urlconf
from django.utils.cache import has_vary_header

from svc_project.callers import known_sessions
from svc_project.lib.ids import request_id
from svc_project.surfaces import Surface

View = Callable[[HttpRequest], HttpResponseBase]

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""Own files only, nothing inline: a text of somebody else's on a page stays text."""

PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "camera",
        "display-capture",
        "geolocation",
        "hid",
        "microphone",
        "payment",
        "publickey-credentials-get",
        "serial",
        "usb",
    )
)
"""No page uses any of these. The clipboard is left: a new key is copied into it."""


PAGE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"permissions-policy", PERMISSIONS_POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
"""What the middleware gives a page, for one that is made before it."""


class RequestIdMiddleware:
    """Puts the server's own ``x-request-id`` on every response; an incoming one is ignored."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response["x-request-id"] = request_id()
        return response


class HttpsOnlyMiddleware:
    """With ``SVC_HTTPS_ONLY`` every request counts as HTTPS unless the proxy says otherwise.

    TLS ends at the proxy in front, so the connection itself says nothing, and not every proxy sends
    ``X-Forwarded-Proto``. A client that sends a false one is redirected to where it is.
    """

    def __init__(self, get_response: View) -> None:
        if not settings.SVC_HTTPS_ONLY:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.META.setdefault("HTTP_X_FORWARDED_PROTO", "https")
        return self.get_response(request)


class PageHeadersMiddleware:
    """Makes every HTML page strict, and whatever a session opened private."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        # Django's own page about an exception, in development, has its style inside.
        if is_page and not (settings.DEBUG and response.status_code in (404, 500)):
            response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
            response["Permissions-Policy"] = PERMISSIONS_POLICY
        if is_page or has_vary_header(response, "Cookie"):
            response["Cache-Control"] = "no-store"
        return response


class KnownSessionMiddleware:
    """Remembers whose session came in, so that its next request is not taken for a stranger's."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        session = request.session
        # A session that no view looked at has not been read from the database.
        if session.accessed and session.session_key and (user_id := session.get(SESSION_KEY)):
            known_sessions.note(session.session_key, user_id)
        return response


class SurfaceMiddleware:
    """Gives the speech surface its own routes and, with them, its own shape of errors."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if getattr(request, "scope", {}).get("surface") is Surface.SPEECH:
            request.urlconf = "speech.urls"
            # For what a middleware refuses, before Django has looked at the attribute.
            set_urlconf("speech.urls")
        return self.get_response(request)
