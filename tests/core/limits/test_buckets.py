"""Buckets, checked against an exact model, and windows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from core.limits.buckets import HOUR, Charge, Granted, Refusal, Window, WindowUnknown
from core.limits.memory import MemoryLimiter

LIMITS = {"a": 1, "b": 7, "c": 60, "d": 1000, "e": 999_999_937}


class Clock:
    """A fake clock in milliseconds."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


def charge(bucket: str, amount: int, limit: int | None = None) -> Charge:
    return Charge(bucket, "tokens", LIMITS[bucket] if limit is None else limit, amount)


def granted(outcome: Granted | Refusal) -> Granted:
    assert isinstance(outcome, Granted)
    return outcome


def refused(outcome: Granted | Refusal) -> Refusal:
    assert isinstance(outcome, Refusal)
    return outcome


class BucketsAgreeWithExactFractions(RuleBasedStateMachine):
    """Any order of reservations, settlements and pauses, against a model in exact fractions."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.limiter = MemoryLimiter(self.clock)
        self.level = {bucket: Fraction(limit) for bucket, limit in LIMITS.items()}
        self.open: list[Granted] = []

    @rule(milliseconds=st.one_of(st.integers(0, 50), st.integers(0, 200_000)))
    def time_passes(self, milliseconds: int) -> None:
        self.clock.now += milliseconds
        for bucket, limit in LIMITS.items():
            refilled = self.level[bucket] + Fraction(limit * milliseconds, 60_000)
            self.level[bucket] = min(Fraction(limit), refilled)

    @rule(
        shares=st.dictionaries(
            st.sampled_from(sorted(LIMITS)), st.fractions(0, Fraction(5, 4)), min_size=1
        )
    )
    def reserve(self, shares: dict[str, Fraction]) -> None:
        charges = [
            charge(bucket, round(share * LIMITS[bucket])) for bucket, share in shares.items()
        ]
        outcome = self.limiter.take(charges)
        if all(self.level[c.bucket] >= c.amount for c in charges):
            self.open.append(granted(outcome))
            for c in charges:
                self.level[c.bucket] -= c.amount
        else:
            self.check_refusal(charges, refused(outcome))

    def check_refusal(self, charges: Sequence[Charge], refusal: Refusal) -> None:
        level = self.level[refusal.charge.bucket]
        used = refusal.charge.limit - level
        assert refusal.used == -(-used // 1)
        assert refusal.levels[0].remaining == max(0, level // 1)
        assert refusal.levels[0].reset_milliseconds == -(-used * 60_000 // refusal.charge.limit)
        assert refusal.is_final == any(c.amount > c.limit for c in charges)
        if not refusal.is_final:
            wait = refusal.wait_milliseconds
            assert self.all_fit_after(charges, wait)
            assert not self.all_fit_after(charges, wait - 1)

    def all_fit_after(self, charges: Sequence[Charge], milliseconds: int) -> bool:
        return all(
            self.level[c.bucket] + Fraction(c.limit * milliseconds, 60_000) >= c.amount
            for c in charges
        )

    @rule(choice=st.integers(0), factor=st.fractions(0, 3))
    def settle(self, choice: int, factor: Fraction) -> None:
        if not self.open:
            return
        grant = self.open.pop(choice % len(self.open))
        actual = [round(c.amount * factor) for c in grant.charges]
        self.limiter.settle(grant, actual)
        for c, amount in zip(grant.charges, actual, strict=True):
            corrected = self.level[c.bucket] + c.amount - amount
            self.level[c.bucket] = min(Fraction(c.limit), corrected)
        self.limiter.settle(grant, [0] * len(actual))

    @invariant()
    def what_is_left_is_exact(self) -> None:
        for bucket, level in self.level.items():
            probe = refused(self.limiter.take([charge(bucket, LIMITS[bucket] + 1)]))
            assert probe.used == -(-(LIMITS[bucket] - level) // 1)


TestBucketsAgreeWithExactFractions = BucketsAgreeWithExactFractions.TestCase
TestBucketsAgreeWithExactFractions.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)


def test_the_refusal_names_the_bucket_that_waits_longest() -> None:
    limiter = MemoryLimiter(Clock())
    granted(limiter.take([charge("b", 7), charge("d", 1000)]))
    refusal = refused(limiter.take([charge("d", 500), charge("b", 7), charge("c", 1)]))
    assert (refusal.charge.bucket, refusal.wait_milliseconds) == ("b", 60_000)


def test_the_refusal_shows_the_tightest_bucket_of_the_other_scope() -> None:
    limiter = MemoryLimiter(Clock())
    requests = [
        Charge("org:requests", "requests", 60, 1),
        Charge("key:requests", "requests", 10, 1),
    ]
    granted(limiter.take(requests))
    levels = refused(limiter.take([*requests, charge("b", 8)])).levels
    assert [(level.scope, level.limit, level.remaining) for level in levels] == [
        ("tokens", 7, 7),
        ("requests", 10, 9),
    ]


def test_the_used_amount_keeps_its_proportion_when_the_limit_changes() -> None:
    limiter = MemoryLimiter(Clock())
    granted(limiter.take([charge("x", 30_000, limit=60_000)]))
    smaller = refused(limiter.take([charge("x", 301, limit=600)]))
    assert (smaller.used, smaller.wait_milliseconds) == (300, 100)
    larger = refused(limiter.take([charge("x", 60_001, limit=120_000)]))
    assert larger.used == 60_000


def test_a_limit_of_zero_refuses_everything() -> None:
    assert refused(MemoryLimiter(Clock()).take([charge("x", 1, limit=0)])).is_final


def test_idle_buckets_are_evicted_while_others_are_in_use() -> None:
    clock = Clock()
    limiter = MemoryLimiter(clock)
    for second in range(5000):
        granted(limiter.take([charge(f"idle-{second}", 60, limit=60)]))
        granted(limiter.take([charge("busy", 1, limit=600)]))
        clock.now += 1000
    assert len(limiter) < 200
    refusal = refused(limiter.take([charge("idle-4999", 60, limit=60)]))
    assert refusal.used == 59


def test_an_attack_of_refused_requests_leaves_no_memory_behind() -> None:
    limiter = MemoryLimiter(Clock())
    for number in range(5000):
        refused(limiter.take([charge(f"x{number}", 11, limit=10)]))
    assert len(limiter) < 10


def characters(bucket: str, amount: int, used_before: int | None = None) -> Charge:
    """A charge of a window that ends in a day."""
    return Charge(bucket, "characters", 100, amount, window=Window(24 * HOUR, used_before))


def test_a_window_does_not_refill_and_outlives_its_end_by_two_days() -> None:
    clock = Clock()
    limiter = MemoryLimiter(clock)
    granted(limiter.take([characters("day", 100, 0)]))
    clock.now += 24 * HOUR - 1
    refusal = refused(limiter.take([characters("day", 1)]))
    assert (refusal.used, refusal.wait_milliseconds) == (100, 24 * HOUR)
    assert (refusal.levels[0].remaining, refusal.levels[0].reset_milliseconds) == (0, 24 * HOUR)
    clock.now += 48 * HOUR + 2
    granted(limiter.take([charge("a", 1)]))
    with pytest.raises(WindowUnknown):
        limiter.take([characters("day", 1)])


def test_an_unknown_window_takes_nothing_from_the_buckets_beside_it() -> None:
    limiter = MemoryLimiter(Clock())
    with pytest.raises(WindowUnknown):
        limiter.take([charge("b", 7), characters("day", 1)])
    granted(limiter.take([charge("b", 7), characters("day", 1, 0)]))


def test_used_before_only_raises_the_count() -> None:
    limiter = MemoryLimiter(Clock())
    granted(limiter.take([characters("day", 50, 0)]))
    granted(limiter.take([characters("day", 10, 20)]))
    assert refused(limiter.take([characters("day", 31, 70)])).used == 70
    assert refused(limiter.take([characters("day", 31)])).used == 70


def test_dropped_windows_get_no_refund_and_buckets_stay() -> None:
    limiter = MemoryLimiter(Clock())
    reservation = granted(limiter.take([charge("b", 5), characters("day", 50, 0)]))
    limiter.forget_windows()
    assert len(limiter) == 1
    limiter.settle(reservation, [5, 0])
    assert refused(limiter.take([charge("b", 5)])).used == 5
    with pytest.raises(WindowUnknown):
        limiter.take([characters("day", 1)])


def test_an_hourly_bucket_refills_in_an_hour() -> None:
    clock = Clock()
    limiter = MemoryLimiter(clock)
    clones = Charge("x", "clones", 60, 1, period=HOUR)
    for _ in range(60):
        granted(limiter.take([clones]))
    refusal = refused(limiter.take([clones]))
    assert (refusal.used, refusal.wait_milliseconds) == (60, 60_000)
    assert refusal.levels[0].reset_milliseconds == HOUR
    clock.now += 60_000
    granted(limiter.take([clones]))
    refused(limiter.take([clones]))
