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

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

import msgspec

AGAIN: Final = (
    "Send it again, with growing pauses. If it stays, give the operators of this gateway the "
    "request id."
)
"""The cure of failures that are not the caller's."""


class ApiError(Exception):
    """A failure that the contract names.

    ``message`` tells the caller what is wrong and what to do; ``param`` names the field in the
    convention's path form (``messages[0].role``); ``headers`` are added to the response when the
    error becomes a status; ``extra`` are additive members of the ``error`` object.

    ``kept`` is what a list of refused requests may show of the message, where that quotes the request's
    body. ``reason`` is for the log: why, in the gateway's own words, never a caller's. ``admitted``:
    whether the request that it ended has a row. ``model``: the published model of the request, where it is
    known.

    ``cause`` says why an error of this class is answered, and ``cure`` what its reader can do: the page of
    error codes and the console show them. A subclass without them is one of its base's cases: the same
    code, another message.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str | None] = None
    default_message: ClassVar[str] = "The request failed."
    default_param: ClassVar[str | None] = None
    cause: ClassVar[str] = ""
    cure: ClassVar[str] = ""

    def __init__(
        self,
        message: str | None = None,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        kept: str | None = None,
    ) -> None:
        self.message = message or self.default_message
        self.kept = kept or self.message
        self.reason = ""
        self.param = param if param is not None else self.default_param
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})
        self.admitted = False
        self.model = ""
        super().__init__(self.message)

    def because(self, reason: str) -> Self:
        """Set ``reason``, and return the error."""
        self.reason = reason
        return self


def reason_of(error: ApiError) -> str | None:
    """Why ``error`` was answered, for the log; None where its code says it.

    Messages of the gateway's own failures never quote a request, unlike those of refusals.
    """
    if error.reason:
        return error.reason
    if error.status >= ServerError.status and error.message != error.default_message:
        return error.message
    return name_of(type(error)) if error.code is None else None


def name_of(error: type[ApiError]) -> str:
    """The name of an error on the page of errors: its code, else the words of its class (``unknown-voice``).

    A class without a cause of its own has the name of its base, of which it is one of the cases.
    """
    if error.code is None and "cause" not in error.__dict__ and error.__base__ is not None:
        base = error.__base__
        return name_of(base) if issubclass(base, ApiError) else ""
    return error.code or _WORD.sub("-", error.__name__).lower()


def error_named(name: str) -> type[ApiError] | None:
    """The error of that name among the classes that this process has loaded."""
    waiting: list[type[ApiError]] = [ApiError]
    while waiting:
        error = waiting.pop()
        if error.cause and name_of(error) == name:
            return error
        waiting += error.__subclasses__()
    return None


_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


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
    cause = "The request cannot be read, or not under this Host or path."
    cure = "Follow the message. Base URLs are on the console's overview."


class InvalidField(BadRequest):
    """A modelled field failed validation; ``param`` names it and ``code`` is null."""

    cause = (
        "A field has a wrong type or a value out of its bounds, a required one is missing, or "
        "the body is not JSON."
    )
    cure = "`param` names the field and `message` what it must be. The reference lists the bounds."


class UnsupportedParameter(BadRequest):
    code = "unsupported_parameter"
    cause = "The request has an option that this service does not offer, such as `n` above 1."
    cure = "Leave out the field that `param` names. For several answers, send several requests."


class ModelDoesNotSupportTools(BadRequest):
    code = "model_does_not_support_tools"
    default_param = "tools"
    cause = "`tools` were sent to a model without tool calling."
    cure = "Choose a model whose `capabilities.tool_calling` is true, or send no tools."


class ModelDoesNotSupportStructuredOutput(BadRequest):
    code = "model_does_not_support_structured_output"
    default_param = "response_format"
    cause = "A `json_schema` was sent to a model without structured output."
    cure = "Choose a model whose `capabilities.structured_output` is true, or use `json_object`."


class UnsupportedJsonSchema(BadRequest):
    code = "unsupported_json_schema"
    default_param = "response_format"
    cause = "The schema in `response_format` is outside the subset that models can follow."
    cure = "`violations` lists each place with a code, explained below. Change all of them at once."


class BackendRejectedRequest(BadRequest):
    code = "backend_rejected_request"
    default_message = "The model server refused the request."
    cause = "The model server refused the request: often the prompt is longer than the context."
    cure = (
        "The same request gets the same answer. Shorten it, or change the option that the "
        "message names."
    )


class InvalidQuery(BadRequest):
    code = "invalid_query"
    cause = "A parameter of the usage or its export is wrong."
    cure = "`param` names it, and `message` says what it takes."


class PeriodInverted(BadRequest):
    code = "period_inverted"
    cause = "`end` is not after `start`."
    cure = "`end` is exclusive: for one day, set it to the next day."


class PeriodTooLong(BadRequest):
    code = "period_too_long"
    cause = "The period has more than 93 days."
    cure = "Ask for shorter periods."


class InvalidCursor(BadRequest):
    code = "invalid_cursor"
    default_param = "cursor"
    cause = "The cursor was changed, or belongs to another query."
    cure = "Send `next_cursor` of the page before, with the same other parameters."


class CursorNotSupported(BadRequest):
    code = "cursor_not_supported"
    default_param = "cursor"
    cause = "A cursor was sent with `format=csv`."
    cure = "Leave it out: a CSV is the whole period in one answer."


class InvalidCredential(ApiError):
    """The key is missing, malformed, unknown, revoked or of the wrong scope: all look the same."""

    status = 401
    type = "authentication_error"
    default_message = (
        "A valid API key is required. Send it as 'Authorization: Bearer <key>', with a key of the "
        "scope that this endpoint takes."
    )
    cause = (
        "The key is missing, unknown, revoked or expired, or its scope is of another "
        "endpoint. All look the same, so that nothing can be guessed."
    )
    cure = (
        "Send `Authorization: Bearer KEY`. Chat takes `svc_live_` keys, usage also "
        "`svc_read_`, speech `sk_`. The console's page of keys shows which of them work."
    )

    def __init__(self) -> None:
        super().__init__(headers={"www-authenticate": "Bearer"})


class NotFound(ApiError):
    status = 404
    type = "not_found_error"
    default_message = "There is nothing at this address."
    cause = "Nothing is at this path of this address."
    cure = (
        "The base URL ends in `/v1`; chat and speech have addresses of their own. The message "
        "says what is here."
    )


class ModelNotFound(NotFound):
    code = "model_not_found"
    default_param = "model"
    cause = "No model of this name was ever published here."
    cure = "Use an `id` of GET /v1/models, letter by letter."


class ModelRetired(NotFound):
    code = "model_retired"
    default_param = "model"
    cause = "The model is past its shutdown date."
    cure = "Move to the successor that the message and the page of the model name."


class MethodNotAllowed(ApiError):
    """``allowed`` lists the path's methods, for the ``Allow`` header (RFC 9110, 15.5.6)."""

    status = 405
    type = "invalid_request_error"
    cause = "The path exists, but not for this method."
    cure = "Use a method of the `allow` header."

    def __init__(self, allowed: str) -> None:
        super().__init__(
            f"This path does not take that method. Use {allowed}.", headers={"allow": allowed}
        )


class RequestTooLarge(ApiError):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"
    cause = "The body is larger than this path, or this model, takes."
    cure = "Send less: `max_request_bytes` of the model is the most for a chat."


class RateLimitExceeded(ApiError):
    """``limit_scope`` is the label of the counters of throttled requests."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"
    limit_scope: str = "requests"
    cause = "A limit of the key, the organization or the model is used up. The message says which."
    cure = (
        "Wait for the seconds in `retry-after`. Where `x-should-retry` is `false`, waiting "
        "does not help: the request alone is larger than the limit."
    )


class ClientDisconnected(ApiError):
    status = 499
    type = "invalid_request_error"
    code = "client_disconnected"
    default_message = "The client closed the connection."
    cause = (
        "The client closed the connection before the answer was complete. Only the ledger shows it."
    )
    cure = "Raise the client's own timeout, or stream. What was generated is charged."


class ServerError(ApiError):
    status = 500
    type = "server_error"


class BackendUnavailable(ServerError):
    code = "backend_unavailable"
    default_message = "The model server could not be reached. Try again."
    cause = "No model server could be reached or had room, or the connection broke before the end."
    cure = AGAIN


class BackendProtocolError(ServerError):
    code = "backend_protocol_error"
    default_message = "The model server sent an answer that is not valid."
    cause = "The model server sent something invalid."
    cure = AGAIN


class BackendError(ServerError):
    code = "backend_error"
    default_message = "The model server failed while it handled the request."
    cause = "The model server failed while it handled the request."
    cure = AGAIN


class InternalError(ServerError):
    code = "internal_error"
    default_message = "The gateway failed while it handled the request."
    cause = "The gateway itself failed."
    cure = AGAIN


class ServiceUnavailable(ApiError):
    status = 503
    type = "service_unavailable_error"


class ServerOverloaded(ServiceUnavailable):
    code = "server_overloaded"
    default_message = "The service is at capacity. Try again shortly."
    cause = "The gateway has no room at the moment, or its database does not answer."
    cure = AGAIN


class BackendTimeout(ServiceUnavailable):
    code = "backend_timeout"
    default_message = "The model server did not answer in time."
    cause = "The model server did not begin, continue or end its answer in time."
    cure = "Send it again. Long answers are safer streamed, and with a cap on their tokens."


class ServerShuttingDown(ServiceUnavailable):
    code = "server_shutting_down"
    default_message = "This server is shutting down. Try again."
    cause = "This process ends, for instance for an upgrade."
    cure = "Send it again at once: another process takes it."

    def __init__(self) -> None:
        # On another connection another server can answer.
        super().__init__(headers={"connection": "close"})


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
