"""The limit on refused requests."""

from __future__ import annotations

import pytest

from core.errors import (
    ApiError,
    InvalidCredential,
    InvalidField,
    ModelNotFound,
    RateLimitExceeded,
    RequestTooLarge,
    ServerOverloaded,
)
from core.ids import NIL_UUID
from core.limits.refused_requests import RefusedRequests
from tests.core.limits.test_buckets import Clock

NO_KEY = str(NIL_UUID)


def refuse(
    refused: RefusedRequests, times: int, limit: int | None = 1, size: int = 100, key: str = "a key"
) -> None:
    for _ in range(times):
        refused.count("a", key, limit, InvalidField(), size)


def test_after_a_minutes_worth_of_refusals_the_announced_wait_is_exact() -> None:
    clock = Clock()
    refused = RefusedRequests(60, clock)
    refuse(refused, 59)
    assert refused.too_many("a", "a key", 1) is None
    refuse(refused, 3)
    wait = refused.too_many("a", "a key", 1)
    assert wait is not None
    assert (wait.scope, wait.limit, wait.used) == ("key", 60, 62)
    assert wait.headers["retry-after"] == "4"
    assert refused.too_many("b", "b key", 1) is None
    clock.now += wait.wait_milliseconds
    assert refused.too_many("a", "a key", 1) is None


@pytest.mark.parametrize(
    ("requests_per_minute", "limit"), [(1, 60), (60, 60), (600, 600), (None, 600)]
)
def test_an_organization_with_a_larger_limit_may_have_more_refused(
    requests_per_minute: int | None, limit: int
) -> None:
    refused = RefusedRequests(60, Clock())
    refuse(refused, limit - 1, requests_per_minute)
    assert refused.too_many("a", "a key", requests_per_minute) is None
    refuse(refused, 1, requests_per_minute)
    assert refused.too_many("a", "a key", requests_per_minute) is not None


def test_a_changed_limit_keeps_the_used_fraction() -> None:
    refused = RefusedRequests(60, Clock())
    refuse(refused, 300, 600)
    assert refused.too_many("a", "a key", 60) is None
    refuse(refused, 30, 60)
    assert refused.too_many("a", "a key", 60) is not None


def test_a_key_over_its_limit_does_not_stop_the_organizations_other_keys() -> None:
    refused = RefusedRequests(60, Clock())
    refuse(refused, 600, None, size=1_000_000)
    assert refused.too_many("a", "a key", None) is not None
    assert refused.too_many("a", "another key", None) is None


def test_the_consoles_of_two_organizations_have_a_limit_each() -> None:
    refused = RefusedRequests(60, Clock())
    refused.count("b", NO_KEY, 1, InvalidField())
    for _ in range(60):
        refused.count("a", NO_KEY, 1, InvalidField())
    assert refused.too_many("a", NO_KEY, 1) is not None
    assert refused.too_many("b", NO_KEY, 1) is None


def test_four_keys_at_their_limits_stop_the_organization() -> None:
    clock = Clock()
    refused = RefusedRequests(60, clock)
    for key in ("1", "2", "3"):
        refuse(refused, 60, key=key)
    refuse(refused, 59, key="4")
    assert refused.too_many("a", "5", 1) is None
    refuse(refused, 1, key="4")
    wait = refused.too_many("a", "5", 1)
    assert wait is not None
    assert (wait.scope, wait.limit, wait.used) == ("organization", 240, 240)
    assert refused.too_many("b", "6", 1) is None
    clock.now += wait.wait_milliseconds
    assert refused.too_many("a", "5", 1) is None


def test_a_large_body_counts_more_and_never_more_than_sixteen() -> None:
    refused = RefusedRequests(60, Clock())
    refuse(refused, 1, size=1_000_000)
    refuse(refused, 1, size=100_000_000)
    refuse(refused, 27)
    assert refused.too_many("a", "a key", 1) is None
    refuse(refused, 1)
    assert refused.too_many("a", "a key", 1) is not None


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (InvalidField(), True),
        (ModelNotFound(), True),
        (RequestTooLarge(), True),
        (InvalidCredential(), False),
        (RateLimitExceeded(), False),
        (ServerOverloaded(), False),
    ],
)
def test_only_errors_that_blame_the_request_count(error: ApiError, counts: bool) -> None:
    refused = RefusedRequests(1, Clock())
    refused.count("a", "a key", 1, error)
    assert (refused.too_many("a", "a key", 1) is not None) is counts


def test_without_a_limit_nothing_is_refused() -> None:
    refused = RefusedRequests(None)
    refuse(refused, 10_000)
    assert refused.too_many("a", "a key", 1) is None
