"""The columns that rows of chat and of speech share."""

from __future__ import annotations

from django.db import models


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
