"""Counts of requests that limits refused."""

from __future__ import annotations

from django.db import models


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


class ThrottleWriter(models.Model):
    """The last batch of counts that a process has added, so that no batch is added twice."""

    process = models.UUIDField(primary_key=True)
    batch = models.PositiveBigIntegerField()
    written_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.process}: {self.batch}"
