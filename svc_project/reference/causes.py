"""The cause and the cure of each error class, for the page of error codes.

``tests/svc_project/reference/test_errors.py`` compares ``CAUSES`` with the classes of the code base.
A subclass without an entry of its own is one of its base's cases: same code, another message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accounts.console import sessions
from speech import errors as speech
from speech.requests import session_bounds
from svc_project import surfaces
from svc_project.lib import errors
from svc_project.lib.asgi import websocket
from svc_project.lib.errors import ApiError
from svc_project.serving import http_protocol


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an error is answered, and what its reader can do."""

    cause: str
    cure: str


Causes = dict[type[ApiError], Cause]

_AGAIN: Final = (
    "Send it again, with growing pauses. If it stays, give the operators of this gateway the "
    "request id."
)

_CHAT: Final[Causes] = {
    errors.InvalidField: Cause(
        "A field has a wrong type or a value out of its bounds, a required one is missing, or the "
        "body is not JSON.",
        "`param` names the field and `message` what it must be. The reference lists the bounds.",
    ),
    errors.UnsupportedParameter: Cause(
        "The request has an option that this service does not offer, such as `n` above 1.",
        "Leave out the field that `param` names. For several answers, send several requests.",
    ),
    errors.ModelDoesNotSupportTools: Cause(
        "`tools` were sent to a model without tool calling.",
        "Choose a model whose `capabilities.tool_calling` is true, or send no tools.",
    ),
    errors.ModelDoesNotSupportStructuredOutput: Cause(
        "A `json_schema` was sent to a model without structured output.",
        "Choose a model whose `capabilities.structured_output` is true, or use `json_object`.",
    ),
    errors.UnsupportedJsonSchema: Cause(
        "The schema in `response_format` is outside the subset that models can follow.",
        "`violations` lists each place with a code, explained below. Change all of them at once.",
    ),
    errors.BackendRejectedRequest: Cause(
        "The model server refused the request: often the prompt is longer than the context.",
        "The same request gets the same answer. Shorten it, or change the option that the message "
        "names.",
    ),
    errors.ModelNotFound: Cause(
        "No model of this name was ever published here.",
        "Use an `id` of GET /v1/models, letter by letter.",
    ),
    errors.ModelRetired: Cause(
        "The model is past its shutdown date.",
        "Move to the successor that the message and the page of the model name.",
    ),
    errors.RateLimitExceeded: Cause(
        "A limit of the key, the organization or the model is used up. The message says which.",
        "Wait for the seconds in `retry-after`. Where `x-should-retry` is `false`, waiting does not "
        "help: the request alone is larger than the limit.",
    ),
    errors.BackendUnavailable: Cause(
        "No connection to a model server could be made, or it broke before the end.",
        _AGAIN,
    ),
    errors.BackendProtocolError: Cause("The model server sent something invalid.", _AGAIN),
    errors.BackendError: Cause("The model server failed while it handled the request.", _AGAIN),
    errors.BackendTimeout: Cause(
        "The model server did not begin, continue or end its answer in time.",
        "Send it again. Long answers are safer streamed, and with a cap on their tokens.",
    ),
    errors.ClientDisconnected: Cause(
        "The client closed the connection before the answer was complete. Never sent: only in the "
        "ledger.",
        "Raise the client's own timeout, or stream. What was generated is charged.",
    ),
}
_USAGE: Final[Causes] = {
    errors.InvalidQuery: Cause(
        "A parameter of the usage or its export is wrong.",
        "`param` names it, and `message` says what it takes.",
    ),
    errors.PeriodInverted: Cause(
        "`end` is not after `start`.",
        "`end` is exclusive: for one day, set it to the next day.",
    ),
    errors.PeriodTooLong: Cause("The period has more than 93 days.", "Ask for shorter periods."),
    errors.InvalidCursor: Cause(
        "The cursor was changed, or belongs to another query.",
        "Send `next_cursor` of the page before, with the same other parameters.",
    ),
    errors.CursorNotSupported: Cause(
        "A cursor was sent with `format=csv`.",
        "Leave it out: a CSV is the whole period in one answer.",
    ),
}
_BOTH: Final[Causes] = {
    errors.InvalidCredential: Cause(
        "The key is missing, unknown, revoked or expired, or its scope is of another endpoint. All "
        "look the same, so that nothing can be guessed.",
        "Send `Authorization: Bearer KEY`. Chat takes `svc_live_` keys, usage also `svc_read_`, "
        "speech `sk_`. The console's page of keys shows which of them work.",
    ),
    errors.NotFound: Cause(
        "Nothing is at this path of this address.",
        "The base URL ends in `/v1`; chat and speech have addresses of their own. The message says "
        "what is here.",
    ),
    errors.MethodNotAllowed: Cause(
        "The path exists, but not for this method.", "Use a method of the `allow` header."
    ),
    errors.RequestTooLarge: Cause(
        "The body is larger than this path, or this model, takes.",
        "Send less: `max_request_bytes` of the model is the most for a chat.",
    ),
    errors.BadRequest: Cause(
        "The request cannot be read, or not under this Host or path.",
        "Follow the message. Base URLs are on the console's overview.",
    ),
    errors.InternalError: Cause("The gateway itself failed.", _AGAIN),
    errors.ServerOverloaded: Cause(
        "The gateway has no room at the moment, or its database does not answer.", _AGAIN
    ),
    errors.ServerShuttingDown: Cause(
        "This process ends, for instance for an upgrade.",
        "Send it again at once: another process takes it.",
    ),
}
_SPEECH: Final[Causes] = {
    speech.UnknownVoice: Cause(
        "No voice with this id can be used by your organization: it does not exist, was deleted, or "
        "is not in your plan.",
        "Use an `id` of GET /v1/models at the speech address.",
    ),
    speech.TooManyClones: Cause(
        f"The organization has {speech.MOST_CLONES} cloned voices.", "Delete one first."
    ),
    speech.CloneNotFound: Cause(
        "No cloned voice of your organization has this id.",
        "Use the `id` that its creation answered. Other voices cannot be deleted.",
    ),
    speech.NameTaken: Cause("A cloned voice already has this name.", "Choose another name."),
    speech.QuotaExceeded: Cause(
        "A limit of the organization on speech; `x-quota-reason` says which.",
        "Wait for the seconds in `retry-after`. Characters of a day are free again at 0:00 UTC.",
    ),
    speech.SpeechFailed: Cause("The engine of the voice failed.", _AGAIN),
    speech.SpeechFull: Cause("The engine of the voice has no room at the moment.", _AGAIN),
    speech.SpeechTimedOut: Cause(
        "The engine of the voice took too long.", "Send it again, or a shorter text."
    ),
    session_bounds.SessionIdle: Cause(
        "A WebSocket session got no text for too long.",
        "Send text as it comes, and `done` at its end; open sessions only when there is text.",
    ),
    session_bounds.SessionTooLong: Cause(
        "A WebSocket session reached its longest duration.", "Open another one for the rest."
    ),
    websocket.ReaderStalled: Cause(
        "The client of a WebSocket stopped reading.", "Read messages while you send text."
    ),
}
_ADDRESS: Final[Causes] = {
    surfaces.UnknownHost: Cause(
        "The Host header is not one of this gateway's.",
        "Use the address that the operators gave you. Operators: ALLOWED_HOSTS lists them.",
    ),
    surfaces.DisguisedPath: Cause(
        "The first part of the path has percent escapes.", "Write the path as it is documented."
    ),
    surfaces.HttpsOnly: Cause(
        "The request came over plain http.",
        "Use https, and replace the key: others may have read it.",
    ),
    http_protocol.NotHttp: Cause(
        "What arrived is not HTTP/1.1.",
        "Check the address and the port; use https if it is set up.",
    ),
    http_protocol.NotOneHost: Cause(
        "The request has no Host header, or several.", "Send exactly one. HTTP libraries do."
    ),
    http_protocol.AnotherHost: Cause(
        "Request line and Host header name different hosts.", "Let the HTTP library set both."
    ),
    http_protocol.UnknownFraming: Cause(
        "The length of the body is not clear.",
        "Send Content-Length or `Transfer-Encoding: chunked`, not both.",
    ),
    http_protocol.HeadTooSlow: Cause(
        "The headers did not arrive in time.", "Send it again on a new connection."
    ),
    http_protocol.TargetTooLong: Cause(
        "The address of the request is too long.", "Put less into the query."
    ),
    http_protocol.HeadTooLarge: Cause(
        "There are too many headers, or too large ones.",
        "Send fewer; cookies of other sites on the same host are often the reason.",
    ),
}
_CONSOLE: Final[Causes] = {
    sessions.SessionEnded: Cause(
        "The session of the console ended while its page was open.",
        "Reload the page and log in again.",
    ),
    sessions.StaleForm: Cause(
        "The request did not come from a current page of the console.", "Reload the page."
    ),
}

SECTIONS: Final[dict[str, Causes]] = {
    "Chat": _CHAT,
    "Usage": _USAGE,
    "Every path": _BOTH,
    "Speech": _SPEECH,
    "Address and connection": _ADDRESS,
    "Console": _CONSOLE,
}
"""The causes by the part of the service that answers them."""

CAUSES: Final[Causes] = {
    error: cause for section in SECTIONS.values() for error, cause in section.items()
}
BASES: Final = frozenset({ApiError, errors.ServerError, errors.ServiceUnavailable})
"""Classes that are never answered themselves."""
