"""The console's explanations of outcomes: causes, cures, and where the page of error codes has more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core import errors
from core.errors import ApiError
from usage.models import Outcome, SpeechOutcome, SpeechRow, UsageRow

_ERRORS: Mapping[str, type[ApiError]] = MappingProxyType(
    {
        Outcome.CLIENT_DISCONNECTED: errors.ClientDisconnected,
        Outcome.BACKEND_REJECTED: errors.BackendRejectedRequest,
        Outcome.BACKEND_UNAVAILABLE: errors.BackendUnavailable,
        Outcome.BACKEND_TIMEOUT: errors.BackendTimeout,
        Outcome.BACKEND_PROTOCOL_ERROR: errors.BackendProtocolError,
        Outcome.BACKEND_ERROR: errors.BackendError,
        Outcome.INTERNAL_ERROR: errors.InternalError,
    }
)
_CAUSES: Mapping[str, str] = MappingProxyType(
    {
        Outcome.SUCCESS: "The whole answer was sent.",
        SpeechOutcome.CLIENT_ERROR: "The session was ended because of an error of the client.",
        Outcome.INTERRUPTED: "The gateway stopped while the request ran. The token counts are the "
        "last ones in its journal.",
    }
)
_CURES: Mapping[str, str] = MappingProxyType(
    {
        SpeechOutcome.CLIENT_ERROR: "The error's type and the close code say what was wrong with "
        "the messages.",
        Outcome.INTERRUPTED: "Send it again.",
    }
)
"""The outcomes for which there is no error."""


def cause(outcome: str) -> str:
    """Why a request ended with ``outcome``; the error of that name says it where there is one."""
    error = _ERRORS.get(outcome)
    return error.cause if error else _CAUSES.get(outcome, "")


def cure(outcome: str) -> str:
    """What to do about ``outcome``; "" where there is nothing to do."""
    error = _ERRORS.get(outcome)
    return error.cure if error else _CURES.get(outcome, "")


_SPEECH_PLACES: Mapping[str, str] = MappingProxyType(
    {
        SpeechOutcome.CLIENT_ERROR: "closes",
        SpeechOutcome.BACKEND_REJECTED: "speech-502",
        SpeechOutcome.BACKEND_UNAVAILABLE: "speech-503",
        SpeechOutcome.BACKEND_TIMEOUT: "speech-504",
        SpeechOutcome.BACKEND_PROTOCOL_ERROR: "speech-502",
        SpeechOutcome.BACKEND_ERROR: "speech-502",
        SpeechOutcome.INTERNAL_ERROR: "speech-500",
        SpeechOutcome.INTERRUPTED: "interrupted",
    }
)
"""Where the page of error codes explains the outcomes of speech, whose errors have no codes."""


def explained_at(row: UsageRow | SpeechRow) -> str:
    """The anchor on the page of error codes that explains the failure of ``row``."""
    if isinstance(row, SpeechRow):
        return _SPEECH_PLACES.get(row.outcome, "statuses")
    if row.outcome == Outcome.INTERRUPTED:
        return row.outcome
    return row.error_code or row.outcome
