"""The tables of the ledger: rows of chat and of speech, and their sums; admissions.

Rows are append-only, with names, ids and prices copied onto every row.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from core.fields import PriceField
from usage.models.health_sums import HealthSums
from usage.models.values import (
    Outcome,
    Reconciliation,
    ResponseFormat,
    Shape,
    SpeechOutcome,
    Transport,
)


class RequestRow(models.Model):
    """One admitted request: its id and admission, and the organization and key that it belongs to.

    No foreign keys: a row outlives whatever it names.
    """

    request_id = models.CharField(max_length=36, primary_key=True)
    occurred_at = models.DateTimeField()
    organization_id = models.UUIDField()
    api_key_id = models.UUIDField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.request_id


class UsageRow(RequestRow):
    """One admitted chat request, as the export shows it (inference contract, Usage export row).

    Written once by ``usage.ledger.ledger`` and never changed, except that the independent count of a
    sampled row is set once. No foreign keys: a row outlives the key and model that it names.
    """

    model_identifier = models.CharField(max_length=200)
    model_id = models.UUIDField()
    model_version_id = models.UUIDField()
    outcome = models.CharField(max_length=24, choices=Outcome.choices)
    streamed = models.BooleanField()
    shape = models.CharField(max_length=12, choices=Shape.choices)
    http_status = models.PositiveSmallIntegerField()
    error_code = models.CharField(max_length=48, null=True)  # noqa: DJ001  # the export has null
    backend_reported_input_tokens = models.PositiveBigIntegerField()
    backend_reported_output_tokens = models.PositiveBigIntegerField()
    backend_reported_reasoning_tokens = models.PositiveBigIntegerField()
    generated_output_tokens = models.PositiveBigIntegerField()
    delivered_output_tokens = models.PositiveBigIntegerField()
    svc_counted_input_tokens = models.PositiveBigIntegerField(null=True)
    svc_counted_output_tokens = models.PositiveBigIntegerField(null=True)
    reconciliation = models.CharField(  # noqa: DJ001  # the export has null
        max_length=12, choices=Reconciliation.choices, null=True
    )
    reconciliation_divergence = models.CharField(max_length=16, null=True)  # noqa: DJ001
    system_fingerprint = models.CharField(max_length=128, null=True)  # noqa: DJ001
    input_price_per_mtok = PriceField()
    output_price_per_mtok = PriceField()
    price_currency = models.CharField(max_length=3)
    cost_provisional = models.BooleanField()
    time_to_first_token_ms = models.PositiveBigIntegerField()
    total_duration_ms = models.PositiveBigIntegerField()
    # Beside the contract's columns: in no export, no summary and no price. A plain integer, because the
    # check of a positive one would read a whole ledger when the column is added.
    cached_input_tokens = models.IntegerField(null=True)
    # Likewise: where the request was answered, how often it was sent, and how long it waited for that.
    model_server = models.CharField(max_length=80, null=True)  # noqa: DJ001  # unknown of older rows
    attempts = models.SmallIntegerField(null=True)
    queue_ms = models.IntegerField(null=True)

    class Meta:
        verbose_name = "usage row"
        ordering: ClassVar[list[str]] = ["occurred_at", "request_id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["organization_id", "occurred_at", "request_id"],
                name="usage_by_organization",
            ),
            models.Index(fields=["api_key_id", "occurred_at"], name="usage_by_key"),
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(
                    backend_reported_reasoning_tokens__lte=models.F(
                        "backend_reported_output_tokens"
                    )
                ),
                name="usage_reasoning_inside_output",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    delivered_output_tokens__lte=models.F("generated_output_tokens")
                ),
                name="usage_delivered_was_generated",
            ),
            models.CheckConstraint(
                condition=models.Q(outcome__in=Outcome.values), name="usage_outcome_known"
            ),
            models.CheckConstraint(
                condition=models.Q(shape__in=Shape.values), name="usage_shape_known"
            ),
        ]


class ChatSums(HealthSums):
    """The columns that all sums of chats share: owner, stamped price, counts, outcomes and times.

    ``cache_reported_input_tokens`` are those of the reported input whose server also reported how
    many of them it had cached. Only the release that wrote a sum added to these two, so they are never
    verified (``usage.models.statements.CACHE_SUMS``). Outcomes and times: ``usage.models.health_sums``.
    """

    organization_id = models.UUIDField()
    api_key_id = models.UUIDField()
    model_id = models.UUIDField()
    model_identifier = models.CharField(max_length=200)
    price_currency = models.CharField(max_length=3)
    input_price_per_mtok = PriceField()
    output_price_per_mtok = PriceField()
    requests = models.PositiveBigIntegerField()
    backend_reported_input_tokens = models.PositiveBigIntegerField()
    backend_reported_output_tokens = models.PositiveBigIntegerField()
    backend_reported_reasoning_tokens = models.PositiveBigIntegerField()
    generated_output_tokens = models.PositiveBigIntegerField()
    delivered_output_tokens = models.PositiveBigIntegerField()
    svc_counted_input_tokens = models.PositiveBigIntegerField()
    svc_counted_output_tokens = models.PositiveBigIntegerField()
    svc_counted_requests = models.PositiveBigIntegerField()
    cached_input_tokens = models.BigIntegerField(db_default=0)
    cache_reported_input_tokens = models.BigIntegerField(db_default=0)

    class Meta:
        abstract = True


class UsageRollup(ChatSums):
    """The sums of one hour of one organization, by API key, model and stamped price.

    Written in the transaction that writes the rows, so it is exact at any moment. The price is
    part of the key: the token sums times it are the rows' costs, and a new price changes no old row.

    On PostgreSQL a key may have several rows, one per ``shard``, so that writers do not wait for
    each other (``usage.models.shards``); a reader adds them up.
    """

    pk = models.CompositePrimaryKey(
        "organization_id",
        "hour",
        "api_key_id",
        "model_id",
        "model_identifier",
        "price_currency",
        "input_price_per_mtok",
        "output_price_per_mtok",
        "shard",
    )
    hour = models.DateTimeField()
    shard = models.PositiveSmallIntegerField(db_default=0)

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["hour"], name="usage_rollup_shards", condition=models.Q(shard__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.organization_id} {self.hour:%Y-%m-%d %H}h {self.model_identifier}"


class UsageDay(ChatSums):
    """The sums of one UTC day of one organization, added up from its hourly roll-ups.

    Valid only before the organization's ``DayWatermark`` (``usage.queries.days``).
    """

    pk = models.CompositePrimaryKey(
        "organization_id",
        "day",
        "api_key_id",
        "model_id",
        "model_identifier",
        "price_currency",
        "input_price_per_mtok",
        "output_price_per_mtok",
    )
    day = models.DateField()

    def __str__(self) -> str:
        return f"{self.organization_id} {self.day} {self.model_identifier}"


class DayWatermark(models.Model):
    """The day up to which (exclusive) an organization's days are summed in ``UsageDay``.

    A trigger on the roll-ups lowers it to the day of a roll-up that changes late.
    """

    organization_id = models.UUIDField(primary_key=True)
    until = models.DateField()

    def __str__(self) -> str:
        return f"{self.organization_id} until {self.until}"


class PrunedMonth(models.Model):
    """A month whose rows are in an archive and no longer in the ledger.

    They were admitted, by their ids, and settled before its end, one of the two in it. Request ids of
    its admissions are those from ``first_id`` to ``end_id`` (exclusive). A trigger refuses such rows,
    so they never come back.
    """

    first = models.DateField(primary_key=True)
    first_id = models.CharField(max_length=36)
    end_id = models.CharField(max_length=36)
    rows = models.PositiveBigIntegerField()
    archive = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    pruned_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.first:%Y-%m}: {self.rows} rows in {self.archive}"


class PrunedSum(ChatSums):
    """The sums that pruned rows had added to the roll-up of the same key.

    A roll-up is the sum of its rows and of this, so it can be verified and rebuilt without them.
    """

    pk = models.CompositePrimaryKey(
        "organization_id",
        "hour",
        "api_key_id",
        "model_id",
        "model_identifier",
        "price_currency",
        "input_price_per_mtok",
        "output_price_per_mtok",
    )
    hour = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.organization_id} {self.hour:%Y-%m-%d %H}h {self.model_identifier}"


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


class SpeechHour(models.Model):
    """The sums of one voice and key of one organization in one hour, added up from its rows.

    Valid only before the organization's ``SpeechWatermark`` (``usage.queries.speech_hours``).
    """

    pk = models.CompositePrimaryKey("organization_id", "hour", "voice", "api_key_id")
    organization_id = models.UUIDField()
    hour = models.DateTimeField()
    voice = models.CharField(max_length=100)
    api_key_id = models.UUIDField()
    requests = models.PositiveBigIntegerField()
    characters = models.PositiveBigIntegerField()
    audio_ms = models.PositiveBigIntegerField()
    failed = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.organization_id} {self.hour:%Y-%m-%d %H}h {self.voice}"


class SpeechWatermark(models.Model):
    """The hour up to which (exclusive) an organization's hours are summed in ``SpeechHour``.

    A trigger on the rows lowers it to the hour of a row that is written or changed late, but never below
    ``pruned``, before which rows were deleted and sums stay (``usage.retention.speech``).
    """

    organization_id = models.UUIDField(primary_key=True)
    until = models.DateTimeField()
    pruned = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.organization_id} until {self.until}"


class Admission(models.Model):
    """An admitted request for which the journal cannot answer (``usage.ledger.admissions``).

    It exists from before the request is dispatched until its row is written. ``record`` is an
    ``admitted`` record of the journal (``usage.ledger.journal.records``). ``closed_at``: when another
    process wrote the row as ``interrupted``, because it took the owner for dead.
    """

    request_id = models.CharField(max_length=36, primary_key=True)
    owner_id = models.UUIDField()
    record = models.JSONField()
    closed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.request_id


class AdmissionOwner(models.Model):
    """A process that owns admissions, and the end of its lease by the database's clock.

    ``since``: since when it has extended its lease without a gap.
    """

    id = models.UUIDField(primary_key=True)
    since = models.DateTimeField()
    alive_until = models.DateTimeField()
    lease_seconds = models.FloatField()

    def __str__(self) -> str:
        return f"{self.id} until {self.alive_until:%Y-%m-%dT%H:%M:%SZ}"
