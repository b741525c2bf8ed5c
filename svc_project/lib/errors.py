"""The errors of requests, one class for each code of the contract's error table.

    ApiError
    |- BadRequest 400
    |  |- InvalidField                     a modelled field failed validation (code null)
    |  |- UnsupportedParameter             unsupported_parameter
    |  |- ModelDoesNotSupportTools         model_does_not_support_tools
    |  |- ModelDoesNotSupportStructuredOutput
    |  |- UnsupportedJsonSchema            unsupported_json_schema
    |  |- BackendRejectedRequest           backend_rejected_request
    |  |- InvalidQuery                     invalid_query
    |  |- PeriodInverted, PeriodTooLong    period_inverted, period_too_long
    |  |- InvalidCursor, CursorNotSupported
    |- InvalidCredential 401
    |- NotFound 404
    |  |- ModelNotFound, ModelRetired
    |- MethodNotAllowed 405
    |- RequestTooLarge 413
    |- RateLimitExceeded 429
    |- ClientDisconnected 499
    |- ServerError 500
    |  |- BackendUnavailable, BackendProtocolError, BackendError, InternalError
    |- ServiceUnavailable 503
       |- ServerOverloaded, BackendTimeout, ServerShuttingDown

Statuses and codes: inference contract, Errors. ``type`` values: docs/api/inference.md, Errors.
Before the first byte an error is sent as a status, after it as one in-band frame; both are
rendered by ``error_body``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class ApiError(Exception):
    """A failure that the contract names.

    ``message`` tells the caller what is wrong and what to do; ``param`` names the field in the
    convention's path form (``messages[0].role``); ``headers`` are added to the response when the
    error becomes a status; ``extra`` are additive members of the ``error`` object.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str | None] = None
    default_message: ClassVar[str] = "The request failed."
    default_param: ClassVar[str | None] = None

    def __init__(
        self,
        message: str | None = None,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message or self.default_message
        self.param = param if param is not None else self.default_param
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        super().__init__(self.message)


def drop_traceback(error: ApiError) -> None:
    """Release the frames through which ``error`` was raised; its handling must be over.

    They hold the request's body, and ``error`` itself: only the garbage collector would free them.
    """
    error.__traceback__ = None
    error.__context__ = error.__cause__ = None


class BadRequest(ApiError):
    status = 400
    type = "invalid_request_error"
    default_message = "The request is not valid."


class InvalidField(BadRequest):
    """A modelled field failed validation; ``param`` names it and ``code`` is null."""


class UnsupportedParameter(BadRequest):
    code = "unsupported_parameter"


class ModelDoesNotSupportTools(BadRequest):
    code = "model_does_not_support_tools"
    default_param = "tools"


class ModelDoesNotSupportStructuredOutput(BadRequest):
    code = "model_does_not_support_structured_output"
    default_param = "response_format"


class UnsupportedJsonSchema(BadRequest):
    code = "unsupported_json_schema"
    default_param = "response_format"


class BackendRejectedRequest(BadRequest):
    code = "backend_rejected_request"
    default_message = "The model server refused the request."


class InvalidQuery(BadRequest):
    code = "invalid_query"


class PeriodInverted(BadRequest):
    code = "period_inverted"


class PeriodTooLong(BadRequest):
    code = "period_too_long"


class InvalidCursor(BadRequest):
    code = "invalid_cursor"
    default_param = "cursor"


class CursorNotSupported(BadRequest):
    code = "cursor_not_supported"
    default_param = "cursor"


class InvalidCredential(ApiError):
    """The key is missing, malformed, unknown, revoked or of the wrong scope: all look the same."""

    status = 401
    type = "authentication_error"
    default_message = (
        "A valid API key is required. Send it as 'Authorization: Bearer <key>', with a key of the "
        "scope that this endpoint takes."
    )

    def __init__(self) -> None:
        super().__init__(headers={"www-authenticate": "Bearer"})


class NotFound(ApiError):
    status = 404
    type = "not_found_error"
    default_message = "There is nothing at this address."


class ModelNotFound(NotFound):
    code = "model_not_found"
    default_param = "model"


class ModelRetired(NotFound):
    code = "model_retired"
    default_param = "model"


class MethodNotAllowed(ApiError):
    """``allowed`` lists the path's methods, for the ``Allow`` header (RFC 9110, 15.5.6)."""

    status = 405
    type = "invalid_request_error"

    def __init__(self, allowed: str) -> None:
        super().__init__(
            f"This path does not take that method. Use {allowed}.", headers={"allow": allowed}
        )


class RequestTooLarge(ApiError):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class RateLimitExceeded(ApiError):
    """``limit_scope`` is the label of the counters of throttled requests."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"
    limit_scope: str = "requests"


class ClientDisconnected(ApiError):
    status = 499
    type = "invalid_request_error"
    code = "client_disconnected"
    default_message = "The client closed the connection."


class ServerError(ApiError):
    status = 500
    type = "server_error"


class BackendUnavailable(ServerError):
    code = "backend_unavailable"
    default_message = "The model server could not be reached. Try again."


class BackendProtocolError(ServerError):
    code = "backend_protocol_error"
    default_message = "The model server sent an answer that is not valid."


class BackendError(ServerError):
    code = "backend_error"
    default_message = "The model server failed while it handled the request."


class InternalError(ServerError):
    code = "internal_error"
    default_message = "The gateway failed while it handled the request."


class ServiceUnavailable(ApiError):
    status = 503
    type = "service_unavailable_error"


class ServerOverloaded(ServiceUnavailable):
    code = "server_overloaded"
    default_message = "The service is at capacity. Try again shortly."


class BackendTimeout(ServiceUnavailable):
    code = "backend_timeout"
    default_message = "The model server did not answer in time."


class ServerShuttingDown(ServiceUnavailable):
    code = "server_shutting_down"
    default_message = "This server is shutting down. Try again."


def error_body(error: ApiError) -> bytes:
    """The JSON object ``{"error": {...}}`` of the inference contract's Errors section."""
    return msgspec.json.encode(
        {
            "error": {
                "message": error.message,
                "type": error.type,
                "param": error.param,
                "code": error.code,
                **error.extra,
            }
        }
    )
