"""The quarantine of requests that crash model servers, on a fake clock."""

from __future__ import annotations

from core.backends.quarantine import MOST_SUSPECTS, Quarantine
from tests.support.clocks import Clock


def quarantine(deaths: int = 2) -> tuple[Quarantine, Clock]:
    clock = Clock()
    return Quarantine(deaths, 300.0, clock), clock


def test_two_crashes_quarantine_a_request_for_a_while() -> None:
    subject, clock = quarantine()
    bad, good = subject.fingerprint("key", b"bad"), subject.fingerprint("key", b"good")
    subject.lost("a", bad)
    subject.lost("a", good)
    assert not subject.is_quarantined(bad)

    subject.lost("b", bad)

    assert subject.is_quarantined(bad)
    assert not subject.is_quarantined(good)
    assert subject.refused == 1
    clock.now += 301
    assert not subject.is_quarantined(bad)
    assert not subject.has_suspects


def test_copies_lost_in_one_crash_count_once() -> None:
    subject, clock = quarantine()
    common = subject.fingerprint("key", b"common")
    for _ in range(50):
        subject.lost("a", common)
    assert not subject.is_quarantined(common)

    clock.now += 20
    subject.lost("a", common)

    assert subject.is_quarantined(common)


def test_a_success_clears_a_request() -> None:
    subject, _ = quarantine()
    common = subject.fingerprint("key", b"common")
    subject.lost("a", common)
    subject.cleared(common)
    subject.lost("b", common)

    assert not subject.is_quarantined(common)


def test_a_server_error_counts_only_when_the_server_is_unreachable_after_it() -> None:
    subject, clock = quarantine(deaths=1)
    bad = subject.fingerprint("key", b"bad")
    subject.erred("a", bad)
    subject.unreachable("b")
    assert not subject.is_quarantined(bad)
    subject.unreachable("a")
    assert subject.is_quarantined(bad)

    old = subject.fingerprint("key", b"old")
    subject.erred("a", old)
    clock.now += 31
    subject.unreachable("a")
    assert not subject.is_quarantined(old)


def test_a_request_cannot_quarantine_another_callers() -> None:
    subject, _ = quarantine(deaths=1)
    subject.lost("a", subject.fingerprint("key", b"body"))

    assert not subject.is_quarantined(subject.fingerprint("other", b"body"))
    assert not subject.is_quarantined(subject.fingerprint("ke", b"ybody"))


def test_memory_is_bounded_and_zero_disables_the_quarantine() -> None:
    subject, _ = quarantine(deaths=1)
    for number in range(MOST_SUSPECTS + 1):
        subject.lost("a", subject.fingerprint("key", b"%d" % number))
    assert not subject.is_quarantined(subject.fingerprint("key", b"0"))
    assert subject.is_quarantined(subject.fingerprint("key", b"1"))

    off, _ = quarantine(deaths=0)
    off.lost("a", off.fingerprint("key", b"1"))
    assert not off.has_suspects
