"""Sums of a release without outcomes and times are filled from the rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import Organization
from core.clock import midnight, now
from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.models import UsageDay, UsageRollup
from usage.models.health_sums import HEALTH_SUMS
from usage.queries import days
from usage.queries.outcomes import Endings, whole
from usage.queries.periods import Period
from usage.verification import fill
from usage.verification.rebuild import rebuild

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

TODAY = midnight(now().date())
WEEK = Period(TODAY - timedelta(days=7), TODAY)


def of(organization: Organization) -> Endings:
    return whole(str(organization.pk), WEEK)


def written_before() -> list[Organization]:
    """Two organizations whose hours and days have no outcomes, but for an hour of the second."""
    both = [Organization.objects.create(name=name) for name in ("Acme", "Northwind")]
    for organization in both:
        for hours in range(1, 6):
            made = [
                receipt(organization_id=str(organization.pk), outcome=outcome)
                for outcome in ("success", "backend_timeout", "interrupted")
            ]
            rows.insert(made, WEEK.start + timedelta(hours=20 * hours))
    kept = UsageRollup.objects.filter(organization_id=both[1].pk).order_by("hour").first()
    assert kept is not None
    others = UsageRollup.objects.exclude(pk=kept.pk)
    others.update(**dict.fromkeys(HEALTH_SUMS, 0))
    days.sum_closed_days()
    return both


def test_upkeep_fills_what_is_missing_and_sums_the_days_again() -> None:
    organizations = written_before()
    assert [of(each).unknown for each in organizations] == [15, 12]

    assert fill.fill() > 0
    days.sum_closed_days()

    for each in organizations:
        assert (of(each).requests, of(each).failed, of(each).unknown) == (15, 10, 0)
        assert of(each).duration is not None
    assert sum(UsageDay.objects.values_list("outcome_success", flat=True)) == 10
    assert fill.fill() == 0


def test_rebuilding_fills_it_too() -> None:
    organizations = written_before()

    rebuild()

    assert [of(each).unknown for each in organizations] == [0, 0]
