"""Metrics of speech requests and sessions, for ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from core.monitoring.metrics import Counter, Family, Histogram
from usage.receipts import SpeechReceipt

outcomes = Counter(
    "svc_speech_outcomes",
    "Admitted speech requests and sessions.",
    ("engine", "transport", "outcome"),
)
characters = Counter("svc_speech_characters", "Characters as the ledger has them.", ("engine",))
audio = Counter("svc_speech_audio_seconds", "Seconds of sound sent to clients.", ("engine",))
first_audio = Histogram(
    "svc_speech_first_audio_seconds",
    "From the arrival of a request over HTTP to its first sound.",
    ("engine",),
)


def observe(receipt: SpeechReceipt) -> None:
    """Count a request or session that was settled."""
    outcomes.add(receipt.engine, receipt.transport, receipt.outcome)
    characters.add(receipt.engine, by=receipt.characters)
    audio.add(receipt.engine, by=receipt.audio_ms / 1000)
    if receipt.first_audio_ms and receipt.transport == "http":
        first_audio.observe(receipt.first_audio_ms / 1000, receipt.engine)


def families() -> Iterator[Family]:
    """Yield all metrics of this module."""
    for counted in (outcomes, characters, audio, first_audio):
        yield counted.family()
