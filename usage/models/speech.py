"""Rows of speech requests and sessions, and the daily sums of an organization."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from usage.models.requests import RequestRow


class ResponseFormat(models.TextChoices):
    """The audio format of an answer (speech contract, POST /v1/audio/speech)."""

    WAV = "wav", "wav"
    MP3 = "mp3", "mp3"
    PCM = "pcm", "pcm"
    OPUS = "opus", "opus"
    FLAC = "flac", "flac"


class Transport(models.TextChoices):
    """The protocol that delivered the audio."""

    HTTP = "http", "HTTP"
    WEBSOCKET = "websocket", "WebSocket"


class SpeechOutcome(models.TextChoices):
    """How an admitted speech request or session ended: an ``Outcome``, or ``client_error``.

    Only speech has sessions that the gateway ends because of the client's errors
    (docs/explain/metering.md, The speech row).
    """

    SUCCESS = "success"
    CLIENT_DISCONNECTED = "client_disconnected"
    CLIENT_ERROR = "client_error"
    BACKEND_REJECTED = "backend_rejected"
    BACKEND_UNAVAILABLE = "backend_unavailable"
    BACKEND_TIMEOUT = "backend_timeout"
    BACKEND_PROTOCOL_ERROR = "backend_protocol_error"
    BACKEND_ERROR = "backend_error"
    INTERNAL_ERROR = "internal_error"
    INTERRUPTED = "interrupted"


class SpeechRow(RequestRow):
    """One admitted speech request or WebSocket session; columns as in ``SpeechReceipt``.

    Written once by ``usage.ledger.ledger`` and never changed. No foreign keys: a row outlives the
    voice, the engine and the key that it names.
    """

    day = models.DateField()
    voice = models.CharField(max_length=100)
    cloned = models.BooleanField()
    engine = models.CharField(max_length=100)
    response_format = models.CharField(max_length=16, choices=ResponseFormat.choices)
    transport = models.CharField(max_length=12, choices=Transport.choices)
    outcome = models.CharField(max_length=24, choices=SpeechOutcome.choices)
    http_status = models.PositiveSmallIntegerField()
    error_type = models.CharField(max_length=48, null=True)  # noqa: DJ001  # as in the receipt
    close_code = models.PositiveSmallIntegerField(null=True)
    characters = models.PositiveBigIntegerField()
    sentences = models.PositiveBigIntegerField()
    audio_ms = models.PositiveBigIntegerField()
    upstream_ms = models.PositiveBigIntegerField()
    first_audio_ms = models.PositiveBigIntegerField()
    gateway_ms = models.PositiveBigIntegerField()

    class Meta:
        verbose_name = "speech row"
        ordering: ClassVar[list[str]] = ["occurred_at", "request_id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["organization_id", "occurred_at", "request_id"],
                name="speech_by_organization",
            ),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(outcome__in=SpeechOutcome.values), name="speech_outcome_known"
            ),
            models.CheckConstraint(
                condition=models.Q(transport__in=Transport.values), name="speech_transport_known"
            ),
        ]


class SpeechDay(models.Model):
    """The sums of one UTC day of one organization, which its daily quota is checked against.

    Written in the transaction that writes the rows, so it is exact at any moment. The day is that
    of the rows' admissions. It has an id of its own because the admin lists no composite keys.
    """

    organization_id = models.UUIDField()
    day = models.DateField()
    requests = models.PositiveBigIntegerField()
    characters = models.PositiveBigIntegerField()
    audio_ms = models.PositiveBigIntegerField()

    class Meta:
        verbose_name = "speech day"
        ordering: ClassVar[list[str]] = ["-day", "organization_id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["organization_id", "day"], name="speech_day_of_organization"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.organization_id} {self.day}: {self.characters} characters"
