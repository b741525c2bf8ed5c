"""The entries of the page of error codes, made from the error classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from accounts.console import sessions
from core import errors
from core.asgi import websocket
from core.errors import ApiError, name_of
from inference.schema_subset import Code
from speech import errors as speech
from speech.api.openapi_messages import CLOSES
from speech.requests import session_bounds
from svc_project import surfaces
from svc_project.serving import http_protocol

_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GENERIC: Final = frozenset({ApiError.default_message, errors.BadRequest.default_message})

SECTIONS: Final[Mapping[str, tuple[type[ApiError], ...]]] = {
    "Chat": (
        errors.InvalidField,
        errors.UnsupportedParameter,
        errors.ModelDoesNotSupportTools,
        errors.ModelDoesNotSupportStructuredOutput,
        errors.UnsupportedJsonSchema,
        errors.BackendRejectedRequest,
        errors.ModelNotFound,
        errors.ModelRetired,
        errors.RateLimitExceeded,
        errors.BackendUnavailable,
        errors.BackendProtocolError,
        errors.BackendError,
        errors.BackendTimeout,
        errors.ClientDisconnected,
    ),
    "Usage": (
        errors.InvalidQuery,
        errors.PeriodInverted,
        errors.PeriodTooLong,
        errors.InvalidCursor,
        errors.CursorNotSupported,
    ),
    "Every path": (
        errors.InvalidCredential,
        errors.NotFound,
        errors.MethodNotAllowed,
        errors.RequestTooLarge,
        errors.BadRequest,
        errors.InternalError,
        errors.ServerOverloaded,
        errors.ServerShuttingDown,
    ),
    "Speech": (
        speech.UnknownVoice,
        speech.UnreadableText,
        speech.TooManyClones,
        speech.TooManyPronunciations,
        speech.CloneNotFound,
        speech.PronunciationNotFound,
        speech.NameTaken,
        speech.QuotaExceeded,
        speech.SpeechFailed,
        speech.SpeechFull,
        speech.SpeechTimedOut,
        session_bounds.SessionIdle,
        session_bounds.SessionTooLong,
        websocket.BadHandshake,
        websocket.UpgradeRequired,
        websocket.ReaderStalled,
    ),
    "Address and connection": (
        surfaces.UnknownHost,
        surfaces.DisguisedPath,
        surfaces.HttpsOnly,
        http_protocol.NotHttp,
        http_protocol.NotOneHost,
        http_protocol.AnotherHost,
        http_protocol.UnknownFraming,
        http_protocol.HeadTooSlow,
        http_protocol.TargetTooLong,
        http_protocol.HeadTooLarge,
    ),
    "Console": (
        sessions.SessionEnded,
        sessions.StaleForm,
        sessions.OnlyRead,
    ),
}
"""The errors by the part of the service that answers them."""

VIOLATIONS: Final[Mapping[Code, str]] = {
    Code.ROOT_NOT_OBJECT: "The root is not an object. Put other answers into a property of one.",
    Code.UNSUPPORTED_KEYWORD: "The subset does not have this keyword. Remove it, and state the rule "
    "in a `description`.",
    Code.OPTIONAL_PROPERTY: "A property is not in `required`. Require it, and allow null.",
    Code.ADDITIONAL_PROPERTIES: "An object does not set `additionalProperties` to false.",
    Code.DEPTH_LIMIT: "The schema is nested too deep, or has too many parts. Flatten it.",
    Code.UNSUPPORTED_TYPE: "The type is none of JSON's.",
    Code.UNRESOLVABLE_REF: "A `$ref` leads nowhere, outside of the schema's own `$defs`, or in a "
    "circle.",
    Code.MALFORMED_SCHEMA: "This is not a schema: a keyword has a wrong value, or one is missing.",
}
"""What the codes in ``violations`` of unsupported_json_schema mean, and what to change."""


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One error. ``name`` is its code, or words where it has none; ``speech_type`` may be empty."""

    anchor: str
    name: str
    status: int
    type: str
    speech_type: str
    code: str | None
    cause: str
    cure: str
    messages: tuple[str, ...]
    """Messages that are always the same."""


@dataclass(frozen=True, slots=True)
class ErrorSection:
    """The errors of one part of the service."""

    anchor: str
    title: str
    entries: list[ErrorEntry]


@dataclass(frozen=True, slots=True)
class SpeechStatus:
    """What a status of the speech surface can mean: its errors have no codes."""

    status: int
    types: tuple[str, ...]
    entries: list[ErrorEntry]


def sections() -> list[ErrorSection]:
    """Every error, by the part of the service that answers it."""
    return [
        ErrorSection(title.lower().replace(" ", "-"), title, [_entry(error) for error in causes])
        for title, causes in SECTIONS.items()
    ]


def speech_statuses() -> list[SpeechStatus]:
    """The errors of the speech surface by status."""
    found: dict[int, list[ErrorEntry]] = {}
    for error in _of_speech():
        found.setdefault(error.status, []).append(_entry(error))
    return [
        SpeechStatus(status, tuple(dict.fromkeys(each.speech_type for each in entries)), entries)
        for status, entries in sorted(found.items())
    ]


def closes() -> Mapping[str, str]:
    """The close codes of a speech session, with their meanings."""
    return CLOSES


def cases(error: type[ApiError]) -> Iterator[type[ApiError]]:
    """``error`` and the subclasses that have no cause of their own: its other messages."""
    yield error
    for each in error.__subclasses__():
        if "cause" not in each.__dict__:
            yield from cases(each)


def _of_speech() -> Iterator[type[ApiError]]:
    return chain((errors.InvalidField,), SECTIONS["Every path"], SECTIONS["Speech"])


def _entry(error: type[ApiError]) -> ErrorEntry:
    messages = dict.fromkeys(each.default_message for each in cases(error))
    return ErrorEntry(
        anchor=name_of(error),
        name=error.code or _words(error).capitalize(),
        status=error.status,
        type=error.type,
        speech_type=speech.error_type(error) if error in _of_speech() else "",
        code=error.code,
        cause=error.cause,
        cure=error.cure,
        messages=tuple(each for each in messages if each not in _GENERIC),
    )


def _words(error: type[ApiError]) -> str:
    return _WORD.sub(" ", error.__name__).lower()
