"""Admissions of requests, and the processes that own them."""

from __future__ import annotations

from django.db import models


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
