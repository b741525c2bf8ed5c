"""The base of the views that answer from the database: one renderer, one way to fail."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from svc_project.lib.errors import (
    ApiError,
    BadRequest,
    InternalError,
    InvalidQuery,
    MethodNotAllowed,
    NotFound,
    ServerOverloaded,
    error_body,
)
from svc_project.lib.unknown_paths import unknown_path

log = logging.getLogger(__name__)

RETRY_SECONDS = 2
"""``retry-after`` while the database is away."""


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
        """Refuses a wrong method before anybody is asked for a key, as the consumers do."""
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)


def error_response(
    error: ApiError, body_of: Callable[[ApiError], bytes] = error_body
) -> HttpResponse:
    """``error`` as a whole HTTP response; ``body_of`` gives the surface's shape of it."""
    return HttpResponse(
        body_of(error),
        status=error.status,
        content_type="application/json",
        headers=error.headers,
    )


def api_error(exception: Exception, context: Mapping[str, Any]) -> ApiError:
    """What a DRF view raised, as a contract error; ``context`` is DRF's.

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
    if (away := database_away(exception)) is not None:
        log.error("the database does not answer: %s", type(exception).__name__)
        return away
    log.error(
        "unexpected %s in %s",
        type(exception).__name__,
        type(context["view"]).__name__,
        exc_info=exception,
    )
    return InternalError()


def database_away(exception: BaseException | None) -> ApiError | None:
    """The error of a view that could not ask the database, when ``exception`` says that it could not.

    It says so as well when the database has no connection left, and of a statement that it ended.
    """
    if isinstance(exception, OperationalError | InterfaceError):
        return ServerOverloaded(
            "The database does not answer. Try again shortly.",
            headers={"retry-after": str(RETRY_SECONDS)},
        )
    return None


def render_exception(exception: Exception, context: Mapping[str, Any]) -> Response | HttpResponse:
    """DRF's exception handler: whatever a view raises becomes a contract error.

    DRF re-raises only when no handler answers, so nothing escapes as HTML.
    """
    return error_response(api_error(exception, context))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler404`` of the API surfaces."""
    return error_response(unknown_path(request.path_info, on_speech=False))


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500`` of the API surfaces."""
    return error_response(fault_of_ours())


def fault_of_ours() -> ApiError:
    """What ``handler500`` of every surface says; called while the exception is handled."""
    return database_away(sys.exception()) or InternalError()


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler400``: what Django itself refuses, such as a Host that is not allowed."""
    return error_response(refused_by_django())


def refused_by_django() -> BadRequest:
    """What ``handler400`` of every surface says."""
    return BadRequest("The request cannot be served under this Host or path.")
