"""The throttled counts of the summary, and the counters behind them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.models import Organization
from core.clock import hour_of, now
from tests.support.builders.traffic import NIL
from tests.support.servers.database_outage import database_outage
from tests.support.until import until
from usage.models import ThrottleCount
from usage.refusals import recorder
from usage.refusals.counts import ThrottleKey, add_throttled
from usage.refusals.recorder import Recorder

UNAVAILABLE: dict[str, Any] = {"source": "unavailable", "total": None, "by_limit_scope": []}
KEY = str(uuid.uuid4())


def refuse(
    organization: Organization,
    times: int,
    model: str = "acme/demo-8b",
    scope: str = "tokens",
    key: str = KEY,
    hours_ago: int = 0,
) -> None:
    hour = hour_of(now() - timedelta(hours=hours_ago))
    add_throttled(Counter({ThrottleKey(str(organization.pk), hour, key, model, scope): times}))


def throttled(reader: Client, **query: str) -> Any:
    """The throttled object, by default of the last three days."""
    moment = now()
    period = {
        "start": (moment - timedelta(days=3)).isoformat(),
        "end": (moment + timedelta(days=1)).isoformat(),
    }
    answer = reader.get("/v1/usage", {**period, **query})
    assert answer.status_code == 200, answer.content
    return answer.json()["throttled"]


@pytest.mark.django_db
def test_refusals_are_counted_by_limit_and_model(
    organization: Organization, reader: Client
) -> None:
    refuse(organization, 2, "acme/b")
    refuse(organization, 3, "acme/b", hours_ago=5)
    refuse(organization, 1, "acme/b", key=NIL)
    refuse(organization, 4, "acme/a", "requests")
    refuse(organization, 5, "acme/a")
    refuse(organization, 7, hours_ago=80)  # outside of the period
    refuse(Organization.objects.create(name="Other"), 7)

    assert throttled(reader) == {
        "source": "rejection_counters",
        "total": 15,
        "by_limit_scope": [
            {"limit_scope": "requests", "model_identifier": "acme/a", "count": 4},
            {"limit_scope": "tokens", "model_identifier": "acme/a", "count": 5},
            {"limit_scope": "tokens", "model_identifier": "acme/b", "count": 6},
        ],
    }


@pytest.mark.django_db
def test_the_filters_apply_to_refusals(organization: Organization, reader: Client) -> None:
    nothing = {"source": "rejection_counters", "total": 0, "by_limit_scope": []}
    assert throttled(reader) == nothing
    refuse(organization, 2, "acme/a")
    refuse(organization, 3, "acme/a", key=NIL)
    refuse(organization, 4, "acme/b")

    assert throttled(reader, model="acme/a")["total"] == 5
    assert throttled(reader, api_key_id=NIL)["total"] == 3
    assert throttled(reader, api_key_id=KEY, model="acme/b")["total"] == 4
    assert throttled(reader, model="acme/none")["total"] == 0


@pytest.mark.django_db
def test_a_period_without_counting_stays_unavailable(
    organization: Organization, reader: Client, settings: Settings
) -> None:
    settings.SVC_THROTTLE_COUNTERS = False
    assert throttled(reader) == UNAVAILABLE
    recorder.maintain(now() - timedelta(days=1))
    recorder.maintain(now() - timedelta(days=1))
    settings.SVC_THROTTLE_COUNTERS = True
    refuse(organization, 7)

    assert throttled(reader) == UNAVAILABLE
    assert throttled(reader, start=(now() - timedelta(hours=20)).isoformat())["total"] == 7


@pytest.mark.django_db
def test_a_period_that_starts_before_the_oldest_kept_count_is_unavailable(
    organization: Organization, reader: Client
) -> None:
    refuse(organization, 7, hours_ago=99 * 24)
    end = (now() - timedelta(days=50)).isoformat()

    early = throttled(reader, start=(now() - timedelta(days=101)).isoformat(), end=end)
    kept = throttled(reader, start=(now() - timedelta(days=99, hours=1)).isoformat(), end=end)

    assert early == UNAVAILABLE
    assert kept["total"] == 7


@pytest.mark.django_db
def test_upkeep_deletes_only_expired_counts(organization: Organization) -> None:
    for days in (0, 100, 102, 400):
        refuse(organization, 1, hours_ago=days * 24)

    recorder.maintain(now())

    assert ThrottleCount.objects.count() == 2


@pytest.fixture
def counters(transactional_db: None, settings: Settings) -> Iterator[Recorder]:
    settings.SVC_THROTTLE_FLUSH_SECONDS = 0.05
    own = Recorder()
    yield own
    own.close()


def stored() -> int:
    return sum(ThrottleCount.objects.values_list("count", flat=True))


def test_counts_reach_the_database_by_themselves(counters: Recorder) -> None:
    for _ in range(3):
        counters.throttled(NIL, KEY, "acme/a", "tokens")

    assert until(lambda: stored() == 3)
    counters.throttled(NIL, KEY, "acme/a", "tokens")
    assert until(lambda: stored() == 4)


def test_two_processes_add_to_one_count(counters: Recorder) -> None:
    other = Recorder()
    for each in (counters, other, counters):
        each.throttled(NIL, KEY, "acme/a", "tokens")

    counters.close()
    other.close()

    assert [count.count for count in ThrottleCount.objects.all()] == [3]


def test_counts_wait_for_a_database_that_is_away(counters: Recorder, settings: Settings) -> None:
    settings.SVC_THROTTLE_FLUSH_SECONDS = 3600.0
    settings.SVC_THROTTLE_COUNTERS = False
    counters.throttled(NIL, KEY, "acme/a", "tokens")  # nothing is counted
    settings.SVC_THROTTLE_COUNTERS = True
    connection.close()
    with database_outage():
        counters.throttled(NIL, KEY, "acme/a", "tokens")
        counters.close()

    counters.flush()

    assert stored() == 1


def test_counts_whose_commit_is_unclear_are_added_once(
    counters: Recorder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SVC_THROTTLE_FLUSH_SECONDS = 3600.0
    add = recorder.add

    def lose_reply(*arguments: Any) -> None:
        monkeypatch.setattr(recorder, "add", add)
        add(*arguments)
        raise OperationalError("the reply is lost")

    monkeypatch.setattr(recorder, "add", lose_reply)
    for _ in range(3):
        counters.throttled(NIL, KEY, "acme/a", "tokens")
    counters.flush()
    counters.throttled(NIL, KEY, "acme/a", "tokens")

    counters.close()

    assert stored() == 4


@pytest.mark.django_db
def test_a_period_before_the_organization_existed_or_in_the_future_is_unavailable(
    organization: Organization, reader: Client
) -> None:
    moment = now()
    past = {
        "start": (moment - timedelta(days=50)).isoformat(),
        "end": (moment - timedelta(days=20)).isoformat(),
    }

    assert throttled(reader, **past) == UNAVAILABLE
    assert throttled(reader, start="2090-01-01", end="2090-02-01") == UNAVAILABLE

    Organization.objects.filter(pk=organization.pk).update(created_at=moment - timedelta(days=30))
    assert throttled(reader, **past)["total"] == 0
