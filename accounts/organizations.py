"""Changes of organizations, for the admin and the commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from accounts import changes
from accounts.models import ApiKey, Organization
from core import clock


def with_working_keys(rows: QuerySet[Organization]) -> QuerySet[Organization]:
    """Add ``keys`` to each row: the number of its keys that have not ended, or null for none."""
    working = Q(expires_at=None) | Q(expires_at__gt=clock.now())
    counted = (
        ApiKey.objects.filter(working, organization=OuterRef("pk"), revoked_at=None)
        .order_by()
        .values("organization")
        .annotate(number=Count("pk"))
    )
    return rows.annotate(keys=Subquery(counted.values("number")))


def set_disabled(chosen: QuerySet[Organization], *, disabled: bool) -> list[Organization]:
    """Disable or enable those of ``chosen`` that are not yet, and return them.

    Every process refuses the keys of a disabled organization within a second.
    """
    with transaction.atomic():
        changes.lock(changes.KEYS)
        is_so = Q(disabled_at__lte=clock.now()) if disabled else Q(disabled_at=None)
        organizations = list(chosen.exclude(is_so).select_for_update())
        for organization in organizations:
            organization.disabled_at = clock.now() if disabled else None
            organization.save(update_fields=["disabled_at"])
    return organizations


def change(named: str | Organization, values: Mapping[str, Any]) -> tuple[Organization, bool]:
    """Set plan, limits and class of an organization; of a name that none has, one is made.

    Returns it, and whether it was made. Raises ``django.core.exceptions.ValidationError`` that names an
    invalid field.
    """
    with transaction.atomic():
        changes.lock(changes.KEYS)
        # One that was found is known by its id: it may have been renamed since.
        of: dict[str, Any] = {"name": named} if isinstance(named, str) else {"pk": named.pk}
        found = Organization.objects.select_for_update().filter(**of).first()
        organization = found or Organization(**of)
        for field, value in values.items():
            setattr(organization, field, value)
        organization.full_clean()
        if found is None or values:
            organization.save()
    return organization, found is None
