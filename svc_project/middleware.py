"""Middleware of Django's responses on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.urls import set_urlconf
from django.utils.cache import has_vary_header

from accounts.keys.callers import recognize
from svc_project.lib.api.views import (
    database_unavailable,
    error_response,
    log_unavailable,
    was_cancelled,
)
from svc_project.lib.ids import request_id
from svc_project.page_headers import content_security_policy, permissions_policy
from svc_project.surfaces import Surface

View = Callable[[HttpRequest], HttpResponseBase]


class RequestIdMiddleware:
    """Puts the server's own ``x-request-id`` on every response; an incoming one is ignored."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # A page that shows its id has set it already.
        response.setdefault("x-request-id", request_id())
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
    """Sets strict headers on HTML pages, and makes responses to a session private."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        # Django's own page about an exception, in development, has its style inside.
        if is_page and not (settings.DEBUG and response.status_code in (404, 500)):
            response["Content-Security-Policy"] = content_security_policy(request.path)
            response["Permissions-Policy"] = permissions_policy(request.path)
        if is_page or has_vary_header(response, "Cookie"):
            response["Cache-Control"] = "no-store"
        return response


class KnownCallerMiddleware:
    """Remembers a request's caller, so that its next request does not count as a stranger's."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        recognize(request)
        return response


class SlowStatementMiddleware:
    """Answers 503 when the database cancelled a statement of a page, without a traceback in the log.

    Views of the API have their own handler of errors.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponseBase | None:
        """Return the answer to a cancelled statement; None for any other exception."""
        error = database_unavailable(exception)
        if error is None or not was_cancelled(exception):
            return None
        log_unavailable(exception)
        if "text/html" not in request.headers.get("accept", ""):
            return error_response(error)
        page = render_to_string("refused.html", {"status": error.status, "message": error.message})
        return HttpResponse(page, status=error.status, headers=error.headers)


class SurfaceMiddleware:
    """Gives the speech surface its own routes and error bodies."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if getattr(request, "scope", {}).get("surface") is Surface.SPEECH:
            request.urlconf = "speech.api.urls"
            # For refusals of a middleware, before Django has read the attribute.
            set_urlconf("speech.api.urls")
        return self.get_response(request)
