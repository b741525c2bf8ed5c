"""The values that columns of rows may have."""

from __future__ import annotations

from django.db import models


class Outcome(models.TextChoices):
    """How an admitted request ended (docs/explain/metering.md, Outcomes)."""

    SUCCESS = "success"
    CLIENT_DISCONNECTED = "client_disconnected"
    BACKEND_REJECTED = "backend_rejected"
    BACKEND_UNAVAILABLE = "backend_unavailable"
    BACKEND_TIMEOUT = "backend_timeout"
    BACKEND_PROTOCOL_ERROR = "backend_protocol_error"
    BACKEND_ERROR = "backend_error"
    INTERNAL_ERROR = "internal_error"
    INTERRUPTED = "interrupted"


class Shape(models.TextChoices):
    """The kind of a request; ``tools`` takes precedence."""

    CHAT = "chat"
    TOOLS = "tools"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"


class Reconciliation(models.TextChoices):
    """The result of the independent count of a sampled request; null outside the sample."""

    MATCHED = "matched"
    DIVERGED = "diverged"
    UNAVAILABLE = "unavailable"


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
