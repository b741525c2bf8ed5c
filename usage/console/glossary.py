"""The console's explanations of the ledger's token counts and outcomes.

The rules: inference contract, "Token figures", and docs/explain/metering.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from core import errors
from core.errors import ApiError
from usage.models import Outcome, SpeechOutcome, SpeechRow, UsageRow


@dataclass(frozen=True, slots=True)
class Figure:
    """A token count with its name and its meaning."""

    name: str
    meaning: str
    value: int | None


_FIGURES = (
    (
        "backend_reported_input",
        "Input, reported by the backend",
        "The input cost is computed from it.",
    ),
    (
        "backend_reported_output",
        "Output, reported by the backend",
        "The output cost is computed from it.",
    ),
    (
        "backend_reported_reasoning",
        "of which reasoning",
        "Already included in the output. Never add the two.",
    ),
    (
        "generated_output",
        "Output, generated",
        "Tokens that the model generated, whether or not they reached the client.",
    ),
    (
        "delivered_output",
        "Output, delivered",
        "Tokens that reached the client. Fewer than generated when the client disconnected.",
    ),
    (
        "svc_counted_input",
        "Input, counted independently",
        "The gateway's own count, for a sample of requests only. Never billed.",
    ),
    (
        "svc_counted_output",
        "Output, counted independently",
        "The gateway's own count, for a sample of requests only. Never billed.",
    ),
)

_CACHED = (
    "of which cached",
    "Tokens that the model server still had from earlier requests, where it reports that. Already "
    "included in the input, at the same price.",
)

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


def figures(source: Any, suffix: str = "", *, cached: int | None) -> list[Figure]:
    """The token counts of ``source``: of a summary or, with suffix ``_tokens``, of a row.

    ``cached``: those of the input that a server had cached; None where none reported any.
    """
    found = [
        Figure(name, meaning, getattr(source, attribute + suffix))
        for attribute, name, meaning in _FIGURES
    ]
    found.insert(1, Figure(*_CACHED, cached))
    return found
