"""Months whose rows were archived, and the sums of the archived rows."""

from __future__ import annotations

from django.db import models

from usage.models.chats import ChatSums


class PrunedMonth(models.Model):
    """A month of admissions whose rows are in an archive and no longer in the ledger.

    Its request ids are those from ``first_id`` to ``end_id`` (exclusive). A trigger keeps rows with
    such ids out of the ledger, so they never come back.
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
