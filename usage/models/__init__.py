"""The ledger's tables, and the SQL that their readers and writers share."""

from usage.models.refusals import Refusal, RefusalCount, ThrottleCount, ThrottleWriter
from usage.models.tables import (
    Admission,
    AdmissionOwner,
    DayWatermark,
    PrunedMonth,
    PrunedSum,
    SpeechDay,
    SpeechHour,
    SpeechRow,
    SpeechWatermark,
    UsageDay,
    UsageRollup,
    UsageRow,
)
from usage.models.values import (
    Outcome,
    Reconciliation,
    ResponseFormat,
    Shape,
    SpeechOutcome,
    Transport,
)

__all__ = [
    "Admission",
    "AdmissionOwner",
    "DayWatermark",
    "Outcome",
    "PrunedMonth",
    "PrunedSum",
    "Reconciliation",
    "Refusal",
    "RefusalCount",
    "ResponseFormat",
    "Shape",
    "SpeechDay",
    "SpeechHour",
    "SpeechOutcome",
    "SpeechRow",
    "SpeechWatermark",
    "ThrottleCount",
    "ThrottleWriter",
    "Transport",
    "UsageDay",
    "UsageRollup",
    "UsageRow",
]
