"""The console's explanations of the ledger's token counts and outcomes.

The rules: inference contract, "Token figures", and docs/explain/metering.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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

OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        Outcome.SUCCESS: "The whole answer was sent.",
        Outcome.CLIENT_DISCONNECTED: "The client disconnected before the answer was complete. The "
        "generated tokens are metered.",
        SpeechOutcome.CLIENT_ERROR: "The session was ended because of an error of the client.",
        Outcome.BACKEND_REJECTED: "The model server refused the request.",
        Outcome.BACKEND_UNAVAILABLE: "The model server could not be reached or had no room.",
        Outcome.BACKEND_TIMEOUT: "The model server did not answer in time.",
        Outcome.BACKEND_PROTOCOL_ERROR: "The model server sent an invalid answer.",
        Outcome.BACKEND_ERROR: "The model server failed while it handled the request.",
        Outcome.INTERNAL_ERROR: "The gateway failed while it handled the request.",
        Outcome.INTERRUPTED: "The gateway stopped while the request ran. The token counts are the "
        "last ones in its journal.",
    }
)


CURES: Mapping[str, str] = MappingProxyType(
    {
        SpeechOutcome.CLIENT_ERROR: "The error's type and the close code say what was wrong with "
        "the messages.",
        Outcome.BACKEND_REJECTED: "Sending the same request again gives the same answer. Change the "
        "field that the error message named: often a prompt beyond the context, or an option that "
        "this model does not have.",
        Outcome.BACKEND_UNAVAILABLE: "Send it again, with growing pauses. If it stays, tell the "
        "people who run this gateway.",
        Outcome.BACKEND_TIMEOUT: "Send it again. Long answers are safer streamed, and with a cap on "
        "their tokens.",
        Outcome.BACKEND_PROTOCOL_ERROR: "Send it again. If it stays, tell the people who run this "
        "gateway the request id.",
        Outcome.BACKEND_ERROR: "Send it again. If it stays, tell the people who run this gateway "
        "the request id.",
        Outcome.INTERNAL_ERROR: "Send it again. If it stays, tell the people who run this gateway "
        "the request id.",
        Outcome.INTERRUPTED: "Send it again.",
    }
)
"""What to do about a failure, by outcome."""


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


def figures(source: Any, suffix: str = "") -> list[Figure]:
    """The token counts of ``source``: of a summary or, with suffix ``_tokens``, of a row."""
    return [
        Figure(name, meaning, getattr(source, attribute + suffix))
        for attribute, name, meaning in _FIGURES
    ]
