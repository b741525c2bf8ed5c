"""The tables of admin keys, failed logins and the audit log; ``accounts.models`` shows them to Django."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, NoReturn

from django.db import models

from core import clock
from core.names import check_name


class AdminKey(models.Model):
    """A key of the management API, of the installation and of no organization; no secret is stored."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    label = models.CharField(max_length=80, help_text="Which automation uses it.")
    prefix = models.CharField(max_length=24, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    pepper = models.CharField(max_length=8, editable=False)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.label})"

    def clean(self) -> None:
        """Refuse a new label that misleads: it names the key in the audit log."""
        check_name(self.label, self, "label")


class FailedLogins(models.Model):
    """The recent failed logins of one subject; see ``accounts.login.throttle``."""

    subject = models.CharField(
        max_length=64, primary_key=True, help_text="A keyed digest: what was typed is not kept."
    )
    count = models.PositiveIntegerField(default=0)
    failed_at = models.DateTimeField(db_index=True)
    blocked_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.count} failed logins"


class Source(models.TextChoices):
    """The interface by which a change was made."""

    ADMIN = "admin", "Admin"
    CONSOLE = "console", "Console"
    COMMAND = "command", "Command"
    API = "api", "API"
    SYSTEM = "system", "The gateway itself"


class AuditEntryChanged(Exception):
    """Code tried to change or delete an audit entry."""


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def update(self, **changes: Any) -> NoReturn:
        raise AuditEntryChanged("An audit entry never changes.")

    def delete(self) -> NoReturn:
        raise AuditEntryChanged("An audit entry is never deleted.")


class AuditEntry(models.Model):
    """One change that an operator, a member or a command made; written with the change itself.

    It copies names instead of referring to rows, so that it outlives them. ``changes`` maps a
    field to its value before and after. Append-only: ``save``, the queryset and triggers (migration
    0002) refuse anything else.
    """

    at = models.DateTimeField(default=clock.now, editable=False, db_index=True)
    actor = models.CharField(max_length=300, help_text="An email address, or command:<name>.")
    source = models.CharField(max_length=16, choices=Source.choices)
    address = models.GenericIPAddressField(null=True, help_text="Of the client, over HTTP.")
    verb = models.CharField(max_length=40)
    kind = models.CharField(max_length=60, help_text="What sort of thing was changed.")
    subject_id = models.CharField(max_length=64)
    subject = models.CharField(max_length=400)
    organization_id = models.UUIDField(null=True, db_index=True)
    changes = models.JSONField(default=dict)

    objects = AuditQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        ordering: ClassVar[list[str]] = ["-id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["kind", "subject_id"], name="audit_entry_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} {self.verb} by {self.actor}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AuditEntryChanged("An audit entry never changes.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AuditEntryChanged("An audit entry is never deleted.")
