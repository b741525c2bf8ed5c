"""The base of the views that read the database: one renderer, one error handler."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import SuspiciousOperation, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api.unknown_paths import unknown_path
from core.errors import (
    ApiError,
    BadRequest,
    InternalError,
    InvalidQuery,
    MethodNotAllowed,
    NotFound,
    ServerOverloaded,
    error_body,
)
from core.ids import request_id
from core.monitoring.current_request import current_id

log = logging.getLogger(__name__)

RETRY_SECONDS = 2
"""``retry-after`` while the database is unavailable."""


class AnyAccept:
    """Content negotiation that never refuses: the first renderer, always."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    """A DRF view whose failures are ``ApiError`` objects, rendered in the surface's shape."""

    content_negotiation_class = AnyAccept  # type: ignore[assignment]  # same two methods, no base needed

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a wrong method before the key is checked, as the consumers do."""
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)


class ErrorResponse(HttpResponse):
    """An answer that reports ``error``."""

    error: ApiError


def error_response(
    error: ApiError, body_of: Callable[[ApiError], bytes] = error_body
) -> ErrorResponse:
    """``error`` as a whole HTTP response; ``body_of`` renders the surface's error body."""
    response = ErrorResponse(
        body_of(error),
        status=error.status,
        content_type="application/json",
        headers=error.headers,
    )
    response.error = error
    return response


def api_error(exception: Exception, context: Mapping[str, Any]) -> ApiError:
    """Convert an exception of a DRF view to a contract error; ``context`` is DRF's.

    An unexpected exception is logged with its traceback and becomes ``internal_error``.
    """
    if isinstance(exception, exceptions.MethodNotAllowed):
        return MethodNotAllowed(", ".join(context["view"].allowed_methods))
    if isinstance(exception, exceptions.NotFound):
        return NotFound()
    if isinstance(exception, ApiError):
        return exception
    if isinstance(exception, TooManyFieldsSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return InvalidQuery(f"The query has more than {most} parameters. Send fewer.")
    if isinstance(exception, SuspiciousOperation):
        return refused_by_django()
    if (away := database_unavailable(exception)) is not None:
        log_unavailable(exception)
        return away
    log.error(
        "unexpected %s in %s",
        type(exception).__name__,
        type(context["view"]).__name__,
        exc_info=exception,
    )
    return InternalError()


def database_unavailable(exception: BaseException | None) -> ApiError | None:
    """Return a 503 when ``exception`` says that the database is unavailable, else ``None``.

    The database counts as unavailable too when it has no connection left or cancelled a statement.
    """
    if isinstance(exception, OperationalError | InterfaceError):
        return ServerOverloaded(
            "The database took too long for this request. Ask for less at once, such as a shorter "
            "period, or try again later."
            if was_cancelled(exception)
            else "The database does not answer. Try again shortly.",
            headers={"retry-after": str(RETRY_SECONDS)},
        )
    return None


def was_cancelled(exception: BaseException) -> bool:
    """Whether PostgreSQL cancelled a statement, because its time was over."""
    return isinstance(exception.__cause__, psycopg.errors.QueryCanceled)


def log_unavailable(exception: Exception) -> None:
    """Log what ``database_unavailable`` answers, without the statement."""
    what = "took too long" if was_cancelled(exception) else "does not answer"
    log.error("the database %s: %s", what, type(exception).__name__)


def render_exception(exception: Exception, context: Mapping[str, Any]) -> Response | HttpResponse:
    """DRF's exception handler: whatever a view raises becomes a contract error.

    DRF re-raises only when no handler answers, so nothing escapes as HTML.
    """
    return error_response(api_error(exception, context))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler404`` of the inference surface."""
    return response_for(request, unknown_path(request.path_info, on_speech=False))


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500`` of the inference surface."""
    return response_for(request, internal_error())


def response_for(request: HttpRequest, error: ApiError) -> HttpResponse:
    """``error`` as a page for a browser, which accepts HTML by name, else as the API's JSON."""
    if "text/html" not in request.headers.get("accept", ""):
        return error_response(error)
    number = current_id() or request_id()
    page = render_to_string("error.html", {"error": error, "request_id": number})
    headers = {**error.headers, "x-request-id": number}
    response = ErrorResponse(page, status=error.status, headers=headers)
    response.error = error
    return response


def internal_error() -> ApiError:
    """The error that ``handler500`` sends on every surface; call it in the exception's handler."""
    return database_unavailable(sys.exception()) or InternalError()


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler400``: requests that Django itself refuses, such as a Host that is not allowed."""
    return response_for(request, refused_by_django())


def refused_by_django() -> BadRequest:
    """The error that ``handler400`` sends on every surface."""
    return BadRequest("The request cannot be served under this Host or path.")
