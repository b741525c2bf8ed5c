"""The base of the views that answer from the database: one renderer, one way to fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import APIView

from svc_project.lib.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    error_body,
)

log = logging.getLogger(__name__)


class AnyAccept:
    """Content negotiation that never refuses: the first renderer, always."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0] if parsers else None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    """A DRF view whose failures are ``ApiError`` objects, rendered in the surface's shape."""

    content_negotiation_class = AnyAccept  # type: ignore[assignment]  # same two methods, no base needed


def error_response(error: ApiError) -> HttpResponse:
    """``error`` as a whole HTTP response of the inference surface."""
    return HttpResponse(
        error_body(error),
        status=error.status,
        content_type="application/json",
        headers=error.headers,
    )


def render_exception(exception: Exception, context: Mapping[str, Any]) -> Response | HttpResponse:
    """DRF's exception handler: whatever a view raises becomes a contract error.

    An unexpected exception is logged by Django with its traceback and answered as
    ``internal_error``; DRF re-raises only when no handler answers, so nothing escapes as HTML.
    """
    if isinstance(exception, exceptions.MethodNotAllowed):
        exception = MethodNotAllowed(", ".join(context["view"].allowed_methods))
    elif isinstance(exception, exceptions.NotFound):
        exception = NotFound()
    if not isinstance(exception, ApiError):
        log.error(
            "unexpected %s in %s",
            type(exception).__name__,
            type(context["view"]).__name__,
            exc_info=exception,
        )
        exception = InternalError()
    return error_response(exception)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler404`` of the API surfaces."""
    return error_response(NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500`` of the API surfaces."""
    return error_response(InternalError())


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler400``: what Django itself refuses, such as a Host that is not allowed."""
    return error_response(BadRequest("The request cannot be served under this Host or path."))
