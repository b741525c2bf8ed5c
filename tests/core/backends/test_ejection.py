"""Ejection and readmission of backends, on a fake clock."""

from __future__ import annotations

from core.backends.ejection import LONGEST_SECONDS, BackendHealth, Ejector, Eligibility, Rules
from tests.support.clocks import Clock


def ejector(eject_after: int = 3, *, probes: bool = True) -> tuple[Ejector, Clock]:
    clock = Clock()
    return Ejector(Rules(eject_after, 5.0, probes), clock), clock


def fail(of: Ejector, backend: BackendHealth, times: int = 1) -> None:
    for _ in range(times):
        of.report_for(backend).failed()


def test_failures_in_a_row_eject_and_a_success_in_between_starts_anew() -> None:
    subject, _ = ejector()
    sick, sound = BackendHealth(), BackendHealth()
    fail(subject, sick, 2)
    subject.report_for(sick).succeeded()
    fail(subject, sick, 2)
    assert subject.eligibilities([sick, sound]) == [Eligibility.ELIGIBLE, Eligibility.ELIGIBLE]

    fail(subject, sick)

    assert not subject.none_ejected
    assert subject.eligibilities([sick, sound]) == [Eligibility.EJECTED, Eligibility.ELIGIBLE]


def test_server_errors_of_one_caller_eject_nothing_and_request_a_health_check() -> None:
    subject, _ = ejector()
    doubtful = BackendHealth()

    asked = [subject.report_for(doubtful).failed("one") for _ in range(6)]

    assert asked == [False, False, True, False, False, True]
    assert subject.none_ejected
    assert not subject.report_for(doubtful).failed("other")
    assert doubtful.ejected


def test_server_errors_count_with_failures_of_another_kind() -> None:
    subject, _ = ejector()
    for other_first in (True, False):
        sick = BackendHealth()
        callers = [None, "one", "one"] if other_first else ["one", "one", None]
        for caller in callers:
            assert not subject.report_for(sick).failed(caller)

        assert sick.ejected


def test_a_success_resets_the_sole_caller() -> None:
    subject, _ = ejector()
    sound = BackendHealth()
    for caller in ("one", "other"):
        subject.report_for(sound).failed(caller)
    subject.report_for(sound).succeeded()

    assert [subject.report_for(sound).failed("one") for _ in range(3)] == [False, False, True]
    assert subject.none_ejected


def test_a_failed_health_check_ejects_unless_a_request_was_answered_meanwhile() -> None:
    subject, _ = ejector()
    for is_well in (True, False):
        asked = BackendHealth()
        for _ in range(3):
            subject.report_for(asked).failed("one")
        if is_well:
            subject.report_for(asked).succeeded()

        subject.failed_health_check(asked, asked.epoch)

        assert asked.ejected is not is_well


def test_on_its_last_chance_one_callers_server_error_ejects_nothing() -> None:
    subject, clock = ejector()
    back = BackendHealth()
    fail(subject, back, 3)
    clock.now += 6
    subject.report_for(back, Eligibility.PROBE_DUE).answered()

    assert subject.report_for(back).failed("one")
    assert not back.ejected
    subject.report_for(back).failed("other")
    assert back.ejected


def test_a_neutral_outcome_changes_nothing() -> None:
    subject, _ = ejector()
    sick = BackendHealth()
    fail(subject, sick, 2)
    subject.report_for(sick).ended()

    fail(subject, sick)

    assert sick.ejected


def test_zero_disables_ejection() -> None:
    subject, _ = ejector(eject_after=0)
    sick = BackendHealth()
    fail(subject, sick, 50)

    assert subject.none_ejected


def test_at_most_half_of_a_group_is_ejected_and_never_the_only_one() -> None:
    subject, clock = ejector()
    group = [BackendHealth() for _ in range(5)]
    for backend in group[:4]:
        fail(subject, backend, 3)
        clock.now += 1

    assert subject.eligibilities(group) == [
        Eligibility.LAST_RESORT,
        Eligibility.LAST_RESORT,
        Eligibility.EJECTED,
        Eligibility.EJECTED,
        Eligibility.ELIGIBLE,
    ]
    assert subject.eligibilities(group[:1]) == [Eligibility.LAST_RESORT]


def test_one_request_at_a_time_is_the_probe() -> None:
    subject, clock = ejector()
    sick, sound = BackendHealth(), BackendHealth()
    fail(subject, sick, 3)
    clock.now += 4.9
    assert subject.eligibilities([sick, sound])[0] is Eligibility.EJECTED
    clock.now += 0.2
    assert subject.eligibilities([sick, sound])[0] is Eligibility.PROBE_DUE

    probe = subject.report_for(sick, Eligibility.PROBE_DUE)

    assert subject.eligibilities([sick, sound])[0] is Eligibility.EJECTED
    probe.ended()
    assert subject.eligibilities([sick, sound])[0] is Eligibility.PROBE_DUE


def test_a_probe_that_succeeds_readmits_and_one_that_fails_waits_longer() -> None:
    subject, clock = ejector()
    sick, sound = BackendHealth(), BackendHealth()
    fail(subject, sick, 3)
    clock.now += 5

    subject.report_for(sick, Eligibility.PROBE_DUE).failed()

    assert subject.seconds_left(sick) == 10
    clock.now += 10
    subject.report_for(sick, Eligibility.PROBE_DUE).succeeded()
    assert subject.none_ejected
    assert subject.eligibilities([sick, sound]) == [Eligibility.ELIGIBLE, Eligibility.ELIGIBLE]
    assert sick.ejections == 1


def test_a_probed_backend_that_begins_to_answer_returns_until_its_next_failure() -> None:
    subject, clock = ejector()
    sick = BackendHealth()
    fail(subject, sick, 3)
    clock.now += 5
    probe = subject.report_for(sick, Eligibility.PROBE_DUE)

    probe.answered()
    assert subject.none_ejected
    probe.failed()

    assert subject.seconds_left(sick) == 10


def test_an_ejection_never_lasts_longer_than_a_minute_and_calm_makes_it_short_again() -> None:
    subject, clock = ejector()
    sick = BackendHealth()
    fail(subject, sick, 3)
    for _ in range(20):
        clock.now += subject.seconds_left(sick)
        subject.report_for(sick, Eligibility.PROBE_DUE).failed()
    assert subject.seconds_left(sick) == LONGEST_SECONDS

    clock.now += LONGEST_SECONDS
    subject.report_for(sick, Eligibility.PROBE_DUE).succeeded()
    clock.now += LONGEST_SECONDS + 1
    fail(subject, sick, 3)

    assert subject.seconds_left(sick) == 5


def test_outcomes_of_requests_from_before_an_ejection_are_ignored() -> None:
    subject, _ = ejector()
    sick = BackendHealth()
    early = [subject.report_for(sick) for _ in range(6)]
    for outcome in early[:3]:
        outcome.failed()
    left = subject.seconds_left(sick)

    early[3].failed()
    early[4].succeeded()

    assert sick.ejected
    assert subject.seconds_left(sick) == left
    assert sick.total_failures == 4


def test_without_probes_only_a_check_readmits() -> None:
    subject, clock = ejector(probes=False)
    sick, sound = BackendHealth(), BackendHealth()
    fail(subject, sick, 3)
    clock.now += 100

    assert subject.eligibilities([sick, sound]) == [Eligibility.EJECTED, Eligibility.ELIGIBLE]
    subject.readmit(sick)
    assert subject.none_ejected


def test_only_the_first_outcome_counts() -> None:
    subject, _ = ejector(eject_after=1)
    sick = BackendHealth()
    outcome = subject.report_for(sick)
    outcome.ended()
    outcome.failed()

    assert subject.none_ejected
