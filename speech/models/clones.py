"""Private voice clones, their reference clips, and the copies of these on speech backends.

Constraints of the database hold under any race: at most ``MOST_CLONES`` clones of an organization,
with different names (speech contract, States and transitions).
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from accounts.models import Organization
from core import clock
from speech.errors import MOST_CLONES
from speech.models.backends import SpeechBackend
from speech.names import MAX_NAME_KEY_LENGTH, MAX_NAME_LENGTH


class VoiceClone(models.Model):
    """A private voice (speech contract, Voice clone), or the tombstone of one.

    ``slot`` numbers an organization's existing clones from 1 to ``MOST_CLONES``; a tombstone has
    none. Slots are unique, so that two requests for the last one cannot both succeed.
    """

    id = models.CharField(primary_key=True, max_length=40, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="clones", editable=False
    )
    api_key_id = models.UUIDField(editable=False)
    name = models.CharField(max_length=MAX_NAME_LENGTH, editable=False)
    name_key = models.CharField(max_length=MAX_NAME_KEY_LENGTH, editable=False)
    slot = models.PositiveSmallIntegerField(null=True, editable=False)
    reference_seconds = models.FloatField(editable=False)
    profile = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    deleted_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "voice clone"
        ordering: ClassVar[list[str]] = ["organization", "created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organization", "slot"], name="clone_slot_once"),
            models.UniqueConstraint(
                fields=["organization", "name_key"],
                condition=Q(deleted_at=None),
                name="clone_name_once",
            ),
            models.CheckConstraint(
                # A check passes when its condition is NULL, so NULL is excluded explicitly.
                condition=Q(deleted_at=None, slot__isnull=False, slot__gte=1, slot__lte=MOST_CLONES)
                | Q(deleted_at__isnull=False, slot=None),
                name="clone_slot_of_an_existing_one",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CloneAudio(models.Model):
    """A clone's reference clip, sealed by ``core.sealing``; deleted with the clone."""

    clone = models.OneToOneField(
        VoiceClone, primary_key=True, on_delete=models.CASCADE, related_name="audio"
    )
    sealed = models.BinaryField()

    def __str__(self) -> str:
        return str(self.clone_id)


class CloneUpload(models.Model):
    """A copy of a reference clip on a speech backend, recorded until the backend has deleted it.

    ``delete_after`` is null while the clone exists; then it is the time of the next try to delete
    the copy. Rows of a clone or of a backend cannot be deleted while copies exist.
    """

    clone = models.ForeignKey(
        VoiceClone, on_delete=models.PROTECT, related_name="uploads", editable=False
    )
    backend = models.ForeignKey(
        SpeechBackend, on_delete=models.PROTECT, related_name="uploads", editable=False
    )
    upstream_name = models.CharField(max_length=200, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    delete_after = models.DateTimeField(null=True, db_index=True, editable=False)

    class Meta:
        verbose_name = "upstream copy of a clone"
        verbose_name_plural = "upstream copies of clones"
        ordering: ClassVar[list[str]] = ["created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["backend", "upstream_name"], name="clone_upload_name_once"
            ),
        ]

    def __str__(self) -> str:
        return self.upstream_name

    @property
    def organization_id(self) -> uuid.UUID:
        """The owner of the clone, whom the audit log names."""
        return self.clone.organization_id
