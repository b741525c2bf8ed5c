"""The ledger's tables, and the SQL that their readers and writers share."""

from usage.models.admissions import Admission, AdmissionOwner
from usage.models.chats import (
    DayWatermark,
    Outcome,
    Reconciliation,
    Shape,
    UsageDay,
    UsageRollup,
    UsageRow,
)
from usage.models.pruned import PrunedMonth, PrunedSum
from usage.models.speech import ResponseFormat, SpeechDay, SpeechOutcome, SpeechRow, Transport
from usage.models.throttles import ThrottleCount, ThrottleWriter

__all__ = [
    "Admission",
    "AdmissionOwner",
    "DayWatermark",
    "Outcome",
    "PrunedMonth",
    "PrunedSum",
    "Reconciliation",
    "ResponseFormat",
    "Shape",
    "SpeechDay",
    "SpeechOutcome",
    "SpeechRow",
    "ThrottleCount",
    "ThrottleWriter",
    "Transport",
    "UsageDay",
    "UsageRollup",
    "UsageRow",
]
