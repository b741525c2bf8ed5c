"""The errors of the speech surface, and the one shape of their bodies.

    ApiError
    |- UnknownVoice 400            proxy_error
    |- UnreadableText 400          invalid_request_error
    |- QuotaExceeded 429           quota_error
    |- NameTaken 409               invalid_request_error
    |- TooManyClones 400           invalid_request_error
    |- TooManyPronunciations 400   invalid_request_error
    |- SpeechFailed 502            proxy_error
    |- SpeechTimedOut 504          proxy_error
    |- SpeechFull 503              proxy_error, with retry-after
    |- CloneNotFound 404           not_found_error
    |- PronunciationNotFound 404   not_found_error

and, shared with the inference surface, ``InvalidField`` 400, ``InvalidCredential`` 401, ``NotFound``
404, ``MethodNotAllowed`` 405, ``RequestTooLarge`` 413, ``InternalError`` 500, ``ServerOverloaded``
and ``ServerShuttingDown`` 503. Statuses and types: docs/api/speech.md, Errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from core.errors import AGAIN, ApiError, BadRequest, NotFound

MOST_CLONES: Final = 10
"""The most clones of an organization (speech contract, Limits)."""

MOST_PRONUNCIATIONS: Final = 500
"""The most pronunciations of an organization."""

RETRY_SOON: Final[Mapping[str, str]] = {"retry-after": "1"}
"""The headers of every 503 of this surface for lack of capacity."""

_TYPES: Final = {
    "authentication_error": "auth_error",
    "server_error": "proxy_error",
    "service_unavailable_error": "proxy_error",
}
"""This surface's names of the error types that both surfaces share."""


class UnknownVoice(ApiError):
    """One error for absent, foreign, deleted and plan-hidden ids, so that none can be probed."""

    status = 400
    type = "proxy_error"
    default_message = "There is no such voice. GET /v1/models lists the voices that you can use."
    cause = (
        "No voice with this id can be used by your organization: it does not exist, was "
        "deleted, or is not in your plan."
    )
    cure = "Use an `id` of GET /v1/models at the speech address."


class UnreadableText(BadRequest):
    """There is nothing in a text, or in a session's sentence, that the voice can speak.

    ``letters`` are those that it cannot read, as "the Chinese script"; None when there are none.
    """

    cause = (
        "The text, or a sentence of a WebSocket session, has no word that the voice can "
        "speak: Chinese for an English voice, or entities such as `&nbsp;` alone. It is not "
        "charged; the session goes on."
    )
    cure = (
        "Choose a voice of that language, if GET /v1/audio/voices at the speech address lists one."
    )

    def __init__(self, letters: str | None = None) -> None:
        what = (
            "The text has no words that the voice can speak, so it spoke and charged nothing."
            if letters is None
            else f"The voice cannot read {letters}, so it spoke and charged nothing. "
            "GET /v1/audio/voices lists the voices that you can use, with their languages."
        )
        super().__init__(what)


class QuotaExceeded(ApiError):
    """A limit of the organization on this surface; ``headers`` carry ``x-quota-reason``."""

    status = 429
    type = "quota_error"
    cause = "A limit of the organization on speech; `x-quota-reason` says which."
    cure = "Wait for the seconds in `retry-after`. Characters of a day are free again at 0:00 UTC."


class NameTaken(ApiError):
    status = 409
    type = "invalid_request_error"
    default_message = "A voice with this name already exists. Choose another name."
    cause = "A cloned voice already has this name."
    cure = "Choose another name."

    def __init__(self) -> None:
        # Otherwise the OpenAI SDKs retry a 409.
        super().__init__(headers={"x-should-retry": "false"})


class TooManyClones(BadRequest):
    default_message = (
        f"You have {MOST_CLONES} cloned voices, the most that an account can have. "
        "Delete one first (DELETE /v1/voices/{id})."
    )
    cause = f"The organization has {MOST_CLONES} cloned voices."
    cure = "Delete one first."


class SpeechFailed(ApiError):
    status = 502
    type = "proxy_error"
    default_message = "The voice could not speak. Try again."
    cause = "The engine of the voice failed."
    cure = AGAIN


class SpeechTimedOut(ApiError):
    status = 504
    type = "proxy_error"
    default_message = "The voice did not answer in time. Try again."
    cause = "The engine of the voice took too long."
    cure = "Send it again, or a shorter text."


class SpeechFull(ApiError):
    status = 503
    type = "proxy_error"
    default_message = "The voice is at capacity. Try again shortly."
    cause = "The engine of the voice has no room at the moment."
    cure = AGAIN

    def __init__(self) -> None:
        super().__init__(headers=RETRY_SOON)


class CloneNotFound(NotFound):
    """The clone to delete is not the caller's; neither are global voices."""

    default_message = "You have no cloned voice with this id."
    cause = "No cloned voice of your organization has this id."
    cure = "Use the `id` that its creation answered. Other voices cannot be deleted."


class TooManyPronunciations(BadRequest):
    default_message = (
        f"You have {MOST_PRONUNCIATIONS} pronunciations, the most that an account can have. "
        "Delete one first (DELETE /v1/pronunciations/{id})."
    )
    cause = f"The organization has {MOST_PRONUNCIATIONS} pronunciations."
    cure = "Delete one first."


class PronunciationNotFound(NotFound):
    """The pronunciation to delete is not the caller's."""

    default_message = "You have no pronunciation with this id."
    cause = "No pronunciation of your organization has this id."
    cure = "Use an `id` of GET /v1/pronunciations at the speech address."


def error_type(error: ApiError | type[ApiError]) -> str:
    """This surface's ``error.type`` of an error."""
    return _TYPES.get(error.type, error.type)


def speech_error_body(error: ApiError) -> bytes:
    """The JSON object of the speech contract's Error body."""
    return msgspec.json.encode({"error": {"message": error.message, "type": error_type(error)}})
