"""Organizations, the people who belong to them, and their API keys."""

from __future__ import annotations

import re
import unicodedata
import uuid
from typing import Any, ClassVar, Final

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from core.names import check_name, is_new

_LONGEST_SLUG: Final = 60


class Plan(models.TextChoices):
    STANDARD = "standard", "Standard"
    ENTERPRISE = "enterprise", "Enterprise"


class PriorityClass(models.TextChoices):
    """Which requests get a model server's slots first; ``core.sharing.priority`` orders them."""

    INTERACTIVE = "interactive", "Interactive"
    STANDARD = "standard", "Standard"
    BATCH = "batch", "Batch"


class Scope(models.TextChoices):
    """The endpoints that a key can call; the key's prefix names its scope."""

    INFERENCE = "inference", "Inference"
    READ = "read", "Read usage"
    SPEECH = "speech", "Speech"


def _default_requests_per_minute() -> int | None:
    return settings.SVC_REQUESTS_PER_MINUTE


def _default_tokens_per_minute() -> int | None:
    return settings.SVC_TOKENS_PER_MINUTE


def _default_speech_requests_per_minute() -> int | None:
    return settings.SVC_SPEECH_REQUESTS_PER_MINUTE


def _default_speech_characters_per_day() -> int | None:
    return settings.SVC_SPEECH_CHARACTERS_PER_DAY


def _is_id(name: str) -> bool:
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


class Organization(models.Model):
    """A tenant; the speech contract's "account". Limits: null means unlimited."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120, unique=True)
    plan = models.CharField(max_length=16, choices=Plan.choices, default=Plan.STANDARD)
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, default=_default_requests_per_minute, help_text="Empty: unlimited."
    )
    tokens_per_minute = models.PositiveBigIntegerField(
        null=True, blank=True, default=_default_tokens_per_minute, help_text="Empty: unlimited."
    )
    speech_requests_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        default=_default_speech_requests_per_minute,
        help_text="Empty: unlimited.",
    )
    speech_characters_per_day = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        default=_default_speech_characters_per_day,
        help_text="Empty: unlimited.",
    )
    priority = models.CharField(
        "priority class",
        max_length=16,
        choices=PriorityClass.choices,
        default=PriorityClass.STANDARD,
        db_default=PriorityClass.STANDARD,
        help_text="Which chat requests get a model server's free slots first.",
    )
    captures_allowed = models.BooleanField(
        "diagnostic captures",
        default=True,
        help_text="Whether x-svc-diagnostic-capture keeps a request's content for operators.",
    )
    failed_content_hours = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="How long the content of failed chats is kept; its owners decide. 0: not at all.",
    )
    disabled_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="From this moment every key of the organization is refused.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    version = models.BigIntegerField(default=0, db_default=0, db_index=True, editable=False)
    """The stamp of the keys at the last change of plan, limits, class or standing; set by a trigger."""

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        permissions = (("open_console", "Can read the console of an organization"),)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check a new name; one that was given before the rule stays."""
        super().clean()
        check_name(self.name, self)
        if _is_id(self.name) and is_new(self.name, self):
            # An id in an address or a command would lead to this one instead.
            raise ValidationError({"name": "It reads as an id. Choose a name."})

    @property
    def slug(self) -> str:
        """The name in [a-z0-9-], for addresses and names of files; the id where nothing of it is left.

        Several organizations may have the same.
        """
        plain = unicodedata.normalize("NFKD", self.name).encode("ascii", "ignore").decode()
        named = re.sub(r"[^a-z0-9]+", "-", plain.lower())[:_LONGEST_SLUG].strip("-")
        return named or str(self.pk)


class UserManager(BaseUserManager["User"]):
    """Makes users whose login is their email address, folded to lower case."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A person who logs in with an email address; staff are operators."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120, blank=True, default="", db_default="")
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        db_default="UTC",
        help_text="In which the console shows times.",
    )
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField("operator", default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    organizations = models.ManyToManyField(
        Organization, through="Membership", related_name="users", blank=True
    )

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering: ClassVar[list[str]] = ["email"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(Lower("email"), name="user_email_unique_in_any_case"),
        ]

    def __str__(self) -> str:
        return self.email

    def clean(self) -> None:
        """Fold the address, so that forms store it as ``create_user`` does."""
        super().clean()
        self.email = self.email.strip().lower()


class Role(models.TextChoices):
    """What a member may do. An owner also decides what is kept of content, and reads it."""

    OWNER = "owner", "Owner"
    MEMBER = "member", "Member"


class Membership(models.Model):
    """A user belongs to an organization and may read its usage and manage its keys."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(
        max_length=8, choices=Role.choices, default=Role.MEMBER, db_default=Role.MEMBER
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        permissions = (("appoint_owner", "Can give an organization its first owner"),)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["user", "organization"], name="membership_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization}"


class ApiKey(models.Model):
    """An API key; only its keyed digest and a prefix, which is no secret, are stored."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="api_keys"
    )
    scope = models.CharField(max_length=16, choices=Scope.choices)
    label = models.CharField(max_length=80, blank=True)
    prefix = models.CharField(max_length=24, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    pepper = models.CharField(
        max_length=8, editable=False, help_text="Which pepper made the digest (a fingerprint)."
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Empty: only the organization's limit."
    )
    tokens_per_minute = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Empty: only the organization's limit."
    )
    priority = models.CharField(  # noqa: DJ001  # null is no class of its own, "" would be a second
        "priority class",
        max_length=16,
        choices=PriorityClass.choices,
        null=True,
        blank=True,
        help_text="Empty: the organization's.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, editable=False)
    version = models.BigIntegerField(default=0, db_default=0, db_index=True, editable=False)
    """The stamp of the keys at the last change of this one but for label and use; set by a trigger."""

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        ordering: ClassVar[list[str]] = ["-created_at"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=models.Q(scope__in=Scope.values), name="api_key_scope_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.label or self.get_scope_display()})"

    def clean(self) -> None:
        """Refuse a new label that misleads: it names the key in the audit log."""
        check_name(self.label, self, "label")


class ChangeStamp(models.Model):
    """A counter per subject that grows with every change; workers compare it with their own.

    Triggers move it (``accounts.change_triggers``).
    """

    subject = models.CharField(max_length=32, primary_key=True)
    version = models.BigIntegerField(default=0)
    removals = models.BigIntegerField(default=0, db_default=0)
    """Changes among them that no row's version shows: deleted rows."""

    def __str__(self) -> str:
        return f"{self.subject} {self.version}"
