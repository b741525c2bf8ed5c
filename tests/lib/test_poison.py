"""Which requests are suspected of killing model servers, on a clock of the test's own."""

from __future__ import annotations

from svc_project.lib.poison import MOST_SUSPECTS, Poison


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def poison(deaths: int = 2) -> tuple[Poison, Clock]:
    clock = Clock()
    return Poison(deaths, 300.0, clock), clock


def test_two_deaths_make_a_request_poison_for_a_while() -> None:
    subject, clock = poison()
    bad, good = subject.fingerprint("key", b"bad"), subject.fingerprint("key", b"good")
    subject.lost("a", bad)
    subject.lost("a", good)
    assert not subject.is_poison(bad)

    subject.lost("b", bad)

    assert subject.is_poison(bad)
    assert not subject.is_poison(good)
    assert subject.refused == 1
    clock.now += 301
    assert not subject.is_poison(bad)
    assert not subject.has_suspects


def test_copies_lost_in_one_death_count_once() -> None:
    subject, clock = poison()
    common = subject.fingerprint("key", b"common")
    for _ in range(50):
        subject.lost("a", common)
    assert not subject.is_poison(common)

    clock.now += 20
    subject.lost("a", common)

    assert subject.is_poison(common)


def test_a_success_clears() -> None:
    subject, _ = poison()
    common = subject.fingerprint("key", b"common")
    subject.lost("a", common)
    subject.cleared(common)
    subject.lost("b", common)

    assert not subject.is_poison(common)


def test_a_server_error_counts_only_when_the_server_is_gone_after_it() -> None:
    subject, clock = poison(deaths=1)
    bad = subject.fingerprint("key", b"bad")
    subject.erred("a", bad)
    subject.unreachable("b")
    assert not subject.is_poison(bad)
    subject.unreachable("a")
    assert subject.is_poison(bad)

    old = subject.fingerprint("key", b"old")
    subject.erred("a", old)
    clock.now += 31
    subject.unreachable("a")
    assert not subject.is_poison(old)


def test_nobodys_request_taints_anothers() -> None:
    subject, _ = poison(deaths=1)
    subject.lost("a", subject.fingerprint("key", b"body"))

    assert not subject.is_poison(subject.fingerprint("other", b"body"))
    assert not subject.is_poison(subject.fingerprint("ke", b"ybody"))


def test_memory_is_bounded_and_zero_switches_it_off() -> None:
    subject, _ = poison(deaths=1)
    for number in range(MOST_SUSPECTS + 1):
        subject.lost("a", subject.fingerprint("key", b"%d" % number))
    assert not subject.is_poison(subject.fingerprint("key", b"0"))
    assert subject.is_poison(subject.fingerprint("key", b"1"))

    off, _ = poison(deaths=0)
    off.lost("a", off.fingerprint("key", b"1"))
    assert not off.has_suspects
