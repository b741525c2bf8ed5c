"""The catalog's tables: weights records, model entries, prices, and limits of organizations.

A published identifier, the weights it is pinned to, and a price never change, because callers rely
on them. ``save`` and the querysets refuse such a change with ``Unchangeable``; triggers (migration
0002) refuse it in SQL that bypasses them.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

from accounts.models import Organization
from core import clock
from core.backends.validators import AT_LEAST_ONE, positive
from core.fields import PriceField
from core.names import check_name
from inference.models.backends import check_defaults, check_each, check_extra_fields

# The syntax of identifiers and currencies, for forms and database constraints.
# Each segment begins with a letter or digit: no "//", no "..", which clients would rewrite.
IDENTIFIER = r"\A(?=.{1,200}\Z)[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*\Z"
IDENTIFIER_RULE = (
    "Use at most 200 letters, digits, '.', '_', ':', '-' and '/'; begin with a letter or digit, "
    "also after each '/'."
)
CURRENCY = r"\A[A-Z]{3}\Z"
CURRENCY_RULE = "Use the three capital letters of ISO 4217, such as USD."
SHORTEST_SILENCE: Final = 1
LONGEST_SILENCE: Final = 3600
SILENCE_RULE: Final = f"Give {SHORTEST_SILENCE} to {LONGEST_SILENCE} seconds."


def check_silence(seconds: float) -> None:
    """Check the seconds between comments. Raises ``ValidationError``, for what is no number, too."""
    if not SHORTEST_SILENCE <= seconds <= LONGEST_SILENCE:
        raise ValidationError(SILENCE_RULE)


class Unchangeable(Exception):
    """The change would break a promise to callers or the ledger."""


PINNED = frozenset({"id", "identifier", "weights", "weights_id", "published_at"})
"""The columns of a published entry that never change (inference contract, Versioning, rule 2)."""


class WeightsQuerySet(models.QuerySet["WeightsRecord"]):
    def update(self, **changes: Any) -> int:
        raise Unchangeable("A weights record never changes; add a new one.")


class EntryQuerySet(models.QuerySet["ModelEntry"]):
    def update(self, **changes: Any) -> int:
        if PINNED & changes.keys() and self.filter(published_at__isnull=False).exists():
            raise Unchangeable("A published entry keeps its identifier, weights and date.")
        return super().update(**changes)

    def delete(self) -> tuple[int, dict[str, int]]:
        if self.filter(published_at__isnull=False).exists():
            raise Unchangeable("A published entry cannot be deleted; supersede it.")
        return super().delete()


class PriceQuerySet(models.QuerySet["Price"]):
    def standing(self) -> PriceQuerySet:
        """The prices that were not withdrawn: only these are ever in force."""
        return self.filter(withdrawal=None)

    def update(self, **changes: Any) -> int:
        raise Unchangeable("A price never changes; add a new one.")

    def delete(self) -> tuple[int, dict[str, int]]:
        if self.filter(entry__published_at__isnull=False).exists():
            raise Unchangeable("A price of a published entry stays; add a new one.")
        return super().delete()


class WithdrawalQuerySet(models.QuerySet["PriceWithdrawal"]):
    def update(self, **changes: Any) -> int:
        raise Unchangeable("A withdrawal never changes.")

    def delete(self) -> tuple[int, dict[str, int]]:
        if self.filter(price__entry__published_at__isnull=False).exists():
            raise Unchangeable("The withdrawal of a price stays; add a new price.")
        return super().delete()


class WeightsRecord(models.Model):
    """One immutable set of weights; its id is ``model_version_id`` in the ledger."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(
        max_length=200, unique=True, help_text="Such as acme/demo-8b@2026-11-01."
    )
    source = models.CharField(
        max_length=300, help_text="Where the weights come from: a repository or a path."
    )
    revision = models.CharField(max_length=120, blank=True, help_text="Revision or digest.")
    quantization = models.CharField(max_length=60, blank=True, help_text="Such as awq-int4.")
    tokenizer = models.CharField(
        max_length=300,
        blank=True,
        help_text="Name, or path of a tokenizer.json, for the independent token count. "
        "Empty: these weights are not counted.",
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = WeightsQuerySet.as_manager()

    class Meta:
        verbose_name = "weights record"
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise Unchangeable("A weights record never changes; add a new one.")
        super().save(*args, **kwargs)

    def clean(self) -> None:
        super().clean()
        check_name(self.name, self)


class ModelEntry(models.Model):
    """One identifier of the catalog (inference contract, Model entry); its id is ``model_id``.

    Only ``inference.catalog.lifecycle`` changes ``published_at``, ``superseded_*``, ``shutdown_at``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    identifier = models.CharField(
        max_length=200,
        unique=True,
        validators=[RegexValidator(IDENTIFIER, IDENTIFIER_RULE)],
        help_text="What clients send as model. It is for ever once the entry is published.",
    )
    weights = models.ForeignKey(WeightsRecord, on_delete=models.PROTECT, related_name="entries")
    context_length = models.PositiveIntegerField(
        validators=[AT_LEAST_ONE], help_text="Tokens of prompt and completion together."
    )
    max_request_bytes = models.PositiveIntegerField(
        validators=[AT_LEAST_ONE], help_text="A larger request body is refused with 413."
    )
    default_max_output_tokens = models.PositiveIntegerField(
        validators=[AT_LEAST_ONE],
        help_text="Reserved against the token limit when a request names no cap.",
    )
    tool_calling = models.BooleanField(default=False)
    structured_output = models.BooleanField(default=False)
    extra_fields = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Added to the body of each request, over the backend's, such as "
        '{"chat_template_kwargs": {"enable_thinking": false}}.',
    )
    defaults = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text='For what a caller leaves out, such as {"temperature": 0.6, "top_p": 0.95}.',
    )
    keep_alive_seconds = models.FloatField(
        null=True,
        blank=True,
        validators=[check_silence],
        help_text="A stream that is silent for so long is sent a comment, so that no proxy cuts it. "
        "The first one begins the response: a failure after it has no status. Empty: none.",
    )
    created_at = models.DateTimeField(default=clock.now, editable=False)
    published_at = models.DateTimeField(null=True, blank=True, editable=False)
    superseded_by = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.PROTECT,
        related_name="predecessors",
        limit_choices_to=Q(published_at__isnull=False),
    )
    superseded_at = models.DateTimeField(null=True, blank=True, editable=False)
    shutdown_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = EntryQuerySet.as_manager()

    class Meta:
        verbose_name = "model"
        ordering: ClassVar[list[str]] = ["identifier"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(identifier__regex=IDENTIFIER),
                name="entry_identifier_well_formed",
                violation_error_message=IDENTIFIER_RULE,
            ),
            positive(
                "entry_figures_positive",
                "context_length",
                "max_request_bytes",
                "default_max_output_tokens",
            ),
            models.CheckConstraint(
                condition=Q(default_max_output_tokens__lte=F("context_length")),
                name="entry_default_max_output_fits",
                violation_error_message=(
                    "default_max_output_tokens must not be above context_length."
                ),
            ),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True, superseded_at__isnull=True)
                | Q(superseded_by__isnull=False, superseded_at__isnull=False),
                name="entry_superseded_names_successor",
            ),
            models.CheckConstraint(
                condition=Q(superseded_at__isnull=True) | Q(published_at__isnull=False),
                name="entry_superseded_was_published",
            ),
            models.CheckConstraint(
                condition=Q(shutdown_at__isnull=True) | Q(superseded_at__isnull=False),
                name="entry_shutdown_was_superseded",
            ),
            models.CheckConstraint(
                condition=Q(keep_alive_seconds__isnull=True)
                | Q(keep_alive_seconds__range=(SHORTEST_SILENCE, LONGEST_SILENCE)),
                name="entry_silence_bounded",
                violation_error_message=SILENCE_RULE,
            ),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | ~Q(superseded_by=F("id")),
                name="entry_not_its_own_successor",
            ),
        ]

    def __str__(self) -> str:
        return self.identifier

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            self._refuse_moved_pins()
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        if ModelEntry.objects.filter(pk=self.pk, published_at__isnull=False).exists():
            raise Unchangeable("A published entry cannot be deleted; supersede it.")
        return super().delete(*args, **kwargs)

    def clean(self) -> None:
        """Check what is added to requests."""
        super().clean()
        check_each(self, {"extra_fields": check_extra_fields, "defaults": check_defaults})

    def _refuse_moved_pins(self) -> None:
        pins = ("identifier", "weights_id", "published_at")
        stored = ModelEntry.objects.filter(pk=self.pk, published_at__isnull=False)
        for row in stored.values(*pins):
            if any(row[pin] != getattr(self, pin) for pin in pins):
                raise Unchangeable("A published entry keeps its identifier, weights and date.")


class Price(models.Model):
    """The price of a million tokens from a moment on; the latest one that has begun is in force.

    Append-only: a price is deleted only together with its draft.
    """

    entry = models.ForeignKey(ModelEntry, on_delete=models.CASCADE, related_name="prices")
    input_per_mtok = PriceField("input per million tokens")
    output_per_mtok = PriceField("output per million tokens")
    currency = models.CharField(max_length=3, validators=[RegexValidator(CURRENCY, CURRENCY_RULE)])
    effective_from = models.DateTimeField(help_text="UTC.")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = PriceQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["entry", "effective_from"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["entry", "effective_from"],
                name="price_once_per_moment",
                violation_error_message="There is already a price from this very moment.",
            ),
            models.CheckConstraint(
                condition=Q(input_per_mtok__gte=0, output_per_mtok__gte=0),
                name="price_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(currency__regex=CURRENCY),
                name="price_currency_well_formed",
                violation_error_message=CURRENCY_RULE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entry} from {clock.iso_milliseconds(self.effective_from)}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise Unchangeable("A price never changes; add a new one.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        if self.entry.published_at is not None:
            raise Unchangeable("A price of a published entry stays; add a new one.")
        return super().delete(*args, **kwargs)


class PriceWithdrawal(models.Model):
    """An announced price that will not come into force; appended only, by ``inference.catalog.pricing``.

    The price itself stays as it was announced.
    """

    price = models.OneToOneField(Price, on_delete=models.CASCADE, related_name="withdrawal")
    created_at = models.DateTimeField(default=clock.now, editable=False)

    objects = WithdrawalQuerySet.as_manager()

    class Meta:
        verbose_name = "withdrawal of a price"
        verbose_name_plural = "withdrawals of prices"
        # Whoever may add a price may withdraw one.
        default_permissions: ClassVar[tuple[str, ...]] = ()

    def __str__(self) -> str:
        return str(self.price)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise Unchangeable("A withdrawal never changes.")
        super().save(*args, **kwargs)


class ModelLimit(models.Model):
    """An organization's limits on one model, besides its overall limits; null means none."""

    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="model_limits"
    )
    entry = models.ForeignKey(ModelEntry, on_delete=models.CASCADE, related_name="limits")
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[AT_LEAST_ONE], help_text="Empty: unlimited."
    )
    tokens_per_minute = models.PositiveBigIntegerField(
        null=True, blank=True, validators=[AT_LEAST_ONE], help_text="Empty: unlimited."
    )

    class Meta:
        ordering: ClassVar[list[str]] = ["entry", "organization"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organization", "entry"], name="model_limit_once"),
            positive("model_limit_positive", "requests_per_minute", "tokens_per_minute"),
        ]

    def __str__(self) -> str:
        return f"{self.organization} on {self.entry}"
