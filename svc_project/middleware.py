"""Middleware of Django's responses on both surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware
from django.template.loader import render_to_string
from django.urls import set_urlconf
from django.utils.cache import has_vary_header

from accounts.keys.callers import recognize
from core.api.views import (
    ErrorResponse,
    database_unavailable,
    error_response,
    log_unavailable,
    was_cancelled,
)
from core.ids import request_id
from core.monitoring import observation
from core.monitoring.current_request import current_id
from svc_project.page_headers import content_security_policy, permissions_policy
from svc_project.surfaces import Surface

View = Callable[[HttpRequest], HttpResponseBase]
_COMPRESSED: Final = frozenset({"text/html", "text/css", "text/javascript"})


class RequestIdMiddleware:
    """Puts the server's own ``x-request-id`` on every response; an incoming one is ignored.

    It notes the error of an answer in the ASGI scope, for the log.
    """

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # A page that shows its id has set it already.
        response.setdefault("x-request-id", current_id() or request_id())
        if isinstance(response, ErrorResponse):
            getattr(request, "scope", {})[observation.WHY] = observation.why(response.error)
        return response


class CompressionMiddleware(GZipMiddleware):
    """Compresses pages and static files, with ``gzip`` (RFC 9110, section 8.4.1.3).

    A page that holds a secret beside what its reader typed tells the secret by its length (BREACH).
    Django adds up to 100 random bytes to each page and masks CSRF tokens anew, session cookies are
    not sent with another site's requests (``SameSite``), and answers to forms, such as a new key's
    secret, are not compressed. Nor are downloads and answers of the API: their clients get bytes as
    they come.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> Any:
        kind = response.get("Content-Type", "").partition(";")[0]
        if request.method != "GET" or response.status_code != 200 or kind not in _COMPRESSED:
            return response
        answer = super().process_response(request, response)
        if "Content-Encoding" in answer:
            # WhiteNoise knows the ETag of the file only. It answers 304 to Last-Modified as well.
            del answer["ETag"]
            if isinstance(answer, StreamingHttpResponse):
                # With a length, by which the gate tells a file, that it collects, from a download.
                whole = b"".join(cast("Iterator[bytes]", answer.streaming_content))
                answer.streaming_content = [whole]
                answer["Content-Length"] = len(whole)
        return answer


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
