"""The tables of refused requests, which have no row: their counts, and the newest ones."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from usage.models.tables import RequestRow


class ThrottleCount(models.Model):
    """How often a limit refused requests in one hour; every worker adds its count every few seconds."""

    pk = models.CompositePrimaryKey(
        "organization_id", "hour", "api_key_id", "model_identifier", "limit_scope"
    )
    organization_id = models.UUIDField()
    hour = models.DateTimeField()
    api_key_id = models.UUIDField()
    model_identifier = models.CharField(max_length=200)
    limit_scope = models.CharField(max_length=16)
    count = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.organization_id} {self.hour:%Y-%m-%d %H}h {self.limit_scope}: {self.count}"


class RefusalCount(models.Model):
    """How often requests were refused with one error in one hour, as ``ThrottleCount``; 429 too.

    ``error`` is its name on the page of errors. ``model_identifier`` is empty where no published model was
    asked for.
    """

    pk = models.CompositePrimaryKey(
        "organization_id", "hour", "api_key_id", "model_identifier", "error"
    )
    organization_id = models.UUIDField()
    hour = models.DateTimeField()
    api_key_id = models.UUIDField()
    model_identifier = models.CharField(max_length=200)
    error = models.CharField(max_length=48)
    count = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.organization_id} {self.hour:%Y-%m-%d %H}h {self.error}: {self.count}"


class Refusal(RequestRow):
    """One of the newest refused requests of an organization; of no use to the ledger.

    ``route``: the consumer's, as in the metrics. ``message`` is what the caller was sent, without quotes of
    the body (``ApiError.kept``). The other columns are those of ``RefusalCount``.
    """

    route = models.CharField(max_length=16)
    status = models.PositiveSmallIntegerField()
    error = models.CharField(max_length=48)
    param = models.CharField(max_length=100)
    message = models.CharField(max_length=500)
    model_identifier = models.CharField(max_length=200)

    class Meta:
        verbose_name = "refused request"
        ordering: ClassVar[list[str]] = ["occurred_at", "request_id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["organization_id", "occurred_at", "request_id"],
                name="refusal_by_organization",
            ),
        ]


class ThrottleWriter(models.Model):
    """The last batch of counts that a process has added, so that no batch is added twice."""

    process = models.UUIDField(primary_key=True)
    batch = models.PositiveBigIntegerField()
    written_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.process}: {self.batch}"
