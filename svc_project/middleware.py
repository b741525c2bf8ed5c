"""What every Django response carries on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import has_vary_header

from svc_project.lib.ids import request_id

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
