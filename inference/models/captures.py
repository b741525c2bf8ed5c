"""The tables of diagnostic captures and of their readings."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class SealedContent(models.Model):
    """One request's content, encrypted (``inference.chat.captures``); deleted after ``expires_at``."""

    request_id = models.CharField(max_length=36, primary_key=True)
    organization_id = models.UUIDField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    content = models.BinaryField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.request_id


class DiagnosticCapture(SealedContent):
    """Kept because the caller asked for it; operators read it."""

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organization_id", "created_at"], name="capture_by_organization"),
        ]


class FailedContent(SealedContent):
    """Kept because the request failed and its organization's owner wants that; owners alone read it."""

    class Meta:
        verbose_name = "content of a failed request"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organization_id", "created_at"], name="failed_by_organization"),
        ]


class CaptureReading(models.Model):
    """A reading of a capture by an operator; no foreign key, because it outlives the capture."""

    request_id = models.CharField(max_length=36, db_index=True)
    organization_id = models.UUIDField()
    operator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    read_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar[list[str]] = ["-read_at"]

    def __str__(self) -> str:
        return f"{self.operator} read {self.request_id}"
