"""How chats ended and how long they took: exact sums of any period, percentiles within their buckets."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import pytest

from accounts.models import Organization
from core.clock import midnight, now
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from usage.ledger import rows
from usage.models import Outcome
from usage.models.health_sums import BOUNDS
from usage.queries import days
from usage.queries.health import Latency
from usage.queries.outcomes import Endings, endings, whole
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters
from usage.verification.rollups import verify

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

TODAY = midnight(now().date())
FIRST = TODAY - timedelta(days=9)
MODELS = {name: str(uuid.uuid4()) for name in ("acme/a", "acme/b")}
KEYS = [str(uuid.uuid4()) for _ in range(2)]


def test_outcomes_and_times_of_any_period_are_those_of_its_rows(organization: Organization) -> None:
    chance = random.Random(5)
    stored = []
    for number in range(300):
        time = chance.choice([0, *BOUNDS, *(each - 1 for each in BOUNDS), 10**7])
        model = chance.choice(list(MODELS))
        one = traffic.write(
            FIRST + timedelta(minutes=43 * number),
            organization_id=str(organization.pk),
            outcome=chance.choice([Outcome.SUCCESS, *Outcome]),
            total_duration_ms=time,
            time_to_first_token_ms=time // 3,
            model_identifier=model,
            model_id=MODELS[model],
            api_key_id=chance.choice(KEYS),
        )
        stored.append(one)
    days.sum_closed_days()
    days_summed = days.summed_until(str(organization.pk))
    assert days_summed > FIRST.date()
    found: list[str] = []
    assert verify(found.append).differences == 0, found

    for start, end, filters in (
        (FIRST, TODAY, Filters()),
        (FIRST + timedelta(hours=7, minutes=13), TODAY - timedelta(hours=30, seconds=1), Filters()),
        (FIRST, TODAY, Filters(model="acme/a", api_key_id=KEYS[1])),
        (FIRST + timedelta(minutes=5), FIRST + timedelta(minutes=50), Filters()),
    ):
        own = [
            each.receipt
            for each in stored
            if start <= each.occurred_at < end
            and filters.model in (None, each.receipt.model_identifier)
            and filters.api_key_id in (None, each.receipt.api_key_id)
        ]
        period = Period(start, end)
        total = whole(str(organization.pk), period, filters)
        by_hour = endings(str(organization.pk), period, filters, Bucket.HOUR)

        outcomes = [each.outcome for each in own]
        assert total.requests == len(own) == sum(each.requests for each in by_hour.values())
        assert total.disconnected == outcomes.count("client_disconnected")
        assert total.failed == sum(
            each not in ("success", "client_disconnected") for each in outcomes
        )
        times = sorted(each.total_duration_ms for each in own if each.outcome == "success")
        assert total.duration is not None
        for percent, estimated in ((50, total.duration.p50), (95, total.duration.p95)):
            exact = times[-(-len(times) * percent // 100) - 1]
            if exact < BOUNDS[-1]:
                assert exact / 1.61 - 10 <= estimated <= exact * 1.61 + 10


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ([], None),
        ([4] * 10, Latency(5, 10)),
        ([1200] * 1000, Latency(1265, 1563)),
        ([100] * 96 + [5000] * 4, Latency(128, 159)),
        ([700_000], Latency(630_000, 630_000)),
    ],
)
def test_a_percentile_is_interpolated_within_its_bucket(
    organization: Organization, durations: list[int], expected: Latency | None
) -> None:
    own = str(organization.pk)
    rows.insert([receipt(organization_id=own, total_duration_ms=each) for each in durations], FIRST)

    assert whole(str(organization.pk), Period(FIRST, TODAY)).duration == expected


def test_what_an_earlier_release_summed_is_said_to_be_unknown() -> None:
    assert Endings((5, 2, *Endings().sums[2:])).unknown == 3
