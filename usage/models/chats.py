"""Rows of chat requests and their sums: append-only, with names, ids and prices copied onto every row."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from svc_project.lib.fields import PriceField
from usage.models.requests import RequestRow


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


class ChatSums(models.Model):
    """The columns that all sums of chats share: owner, stamped price, counts."""

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
