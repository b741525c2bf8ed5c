"""Ejection and return, on a clock of the test's own."""

from __future__ import annotations

from svc_project.lib.health import LONGEST_SECONDS, Condition, Health, Rules, Standing


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def health(eject_after: int = 3, *, probes: bool = True) -> tuple[Health, Clock]:
    clock = Clock()
    return Health(Rules(eject_after, 5.0, probes), clock), clock


def fail(of: Health, condition: Condition, times: int = 1) -> None:
    for _ in range(times):
        of.trial(condition).failed()


def test_failures_in_a_row_eject_and_a_success_in_between_starts_anew() -> None:
    subject, _ = health()
    sick, sound = Condition(), Condition()
    fail(subject, sick, 2)
    subject.trial(sick).succeeded()
    fail(subject, sick, 2)
    assert subject.standings([sick, sound]) == [Standing.IN, Standing.IN]

    fail(subject, sick)

    assert not subject.all_in
    assert subject.standings([sick, sound]) == [Standing.OUT, Standing.IN]


def test_one_callers_server_errors_eject_nothing_and_have_the_backend_asked() -> None:
    subject, _ = health()
    doubtful = Condition()

    asked = [subject.trial(doubtful).failed("one") for _ in range(6)]

    assert asked == [False, False, True, False, False, True]
    assert subject.all_in
    assert not subject.trial(doubtful).failed("other")
    assert doubtful.ejected


def test_server_errors_count_with_failures_of_another_kind() -> None:
    subject, _ = health()
    for other_first in (True, False):
        sick = Condition()
        callers = [None, "one", "one"] if other_first else ["one", "one", None]
        for caller in callers:
            assert not subject.trial(sick).failed(caller)

        assert sick.ejected


def test_a_success_forgets_who_failed() -> None:
    subject, _ = health()
    sound = Condition()
    for caller in ("one", "other"):
        subject.trial(sound).failed(caller)
    subject.trial(sound).succeeded()

    assert [subject.trial(sound).failed("one") for _ in range(3)] == [False, False, True]
    assert subject.all_in


def test_a_bad_answer_ejects_unless_a_request_was_answered_meanwhile() -> None:
    subject, _ = health()
    for is_well in (True, False):
        asked = Condition()
        for _ in range(3):
            subject.trial(asked).failed("one")
        if is_well:
            subject.trial(asked).succeeded()

        subject.gave_no_answer(asked, asked.epoch)

        assert asked.ejected is not is_well


def test_on_its_last_chance_one_callers_server_error_ejects_nothing() -> None:
    subject, clock = health()
    back = Condition()
    fail(subject, back, 3)
    clock.now += 6
    subject.trial(back, Standing.DUE).answered()

    assert subject.trial(back).failed("one")
    assert not back.ejected
    subject.trial(back).failed("other")
    assert back.ejected


def test_an_end_that_says_nothing_changes_nothing() -> None:
    subject, _ = health()
    sick = Condition()
    fail(subject, sick, 2)
    subject.trial(sick).ended()

    fail(subject, sick)

    assert sick.ejected


def test_zero_ejects_nobody() -> None:
    subject, _ = health(eject_after=0)
    sick = Condition()
    fail(subject, sick, 50)

    assert subject.all_in


def test_at_most_half_of_a_group_is_out_and_never_the_only_one() -> None:
    subject, clock = health()
    group = [Condition() for _ in range(5)]
    for condition in group[:4]:
        fail(subject, condition, 3)
        clock.now += 1

    assert subject.standings(group) == [
        Standing.SPARE,
        Standing.SPARE,
        Standing.OUT,
        Standing.OUT,
        Standing.IN,
    ]
    assert subject.standings(group[:1]) == [Standing.SPARE]


def test_one_request_at_a_time_is_the_probe() -> None:
    subject, clock = health()
    sick, sound = Condition(), Condition()
    fail(subject, sick, 3)
    clock.now += 4.9
    assert subject.standings([sick, sound])[0] is Standing.OUT
    clock.now += 0.2
    assert subject.standings([sick, sound])[0] is Standing.DUE

    probe = subject.trial(sick, Standing.DUE)

    assert subject.standings([sick, sound])[0] is Standing.OUT
    probe.ended()
    assert subject.standings([sick, sound])[0] is Standing.DUE


def test_a_probe_that_succeeds_readmits_and_one_that_fails_waits_longer() -> None:
    subject, clock = health()
    sick, sound = Condition(), Condition()
    fail(subject, sick, 3)
    clock.now += 5

    subject.trial(sick, Standing.DUE).failed()

    assert subject.seconds_left(sick) == 10
    clock.now += 10
    subject.trial(sick, Standing.DUE).succeeded()
    assert subject.all_in
    assert subject.standings([sick, sound]) == [Standing.IN, Standing.IN]
    assert sick.ejections == 1


def test_a_probe_whose_answer_began_is_in_again_but_on_its_last_chance() -> None:
    subject, clock = health()
    sick = Condition()
    fail(subject, sick, 3)
    clock.now += 5
    probe = subject.trial(sick, Standing.DUE)

    probe.answered()
    assert subject.all_in
    probe.failed()

    assert subject.seconds_left(sick) == 10


def test_an_ejection_never_lasts_longer_than_a_minute_and_calm_makes_it_short_again() -> None:
    subject, clock = health()
    sick = Condition()
    fail(subject, sick, 3)
    for _ in range(20):
        clock.now += subject.seconds_left(sick)
        subject.trial(sick, Standing.DUE).failed()
    assert subject.seconds_left(sick) == LONGEST_SECONDS

    clock.now += LONGEST_SECONDS
    subject.trial(sick, Standing.DUE).succeeded()
    clock.now += LONGEST_SECONDS + 1
    fail(subject, sick, 3)

    assert subject.seconds_left(sick) == 5


def test_what_began_before_an_ejection_has_no_say_after_it() -> None:
    subject, _ = health()
    sick = Condition()
    early = [subject.trial(sick) for _ in range(6)]
    for trial in early[:3]:
        trial.failed()
    left = subject.seconds_left(sick)

    early[3].failed()
    early[4].succeeded()

    assert sick.ejected
    assert subject.seconds_left(sick) == left
    assert sick.total_failures == 4


def test_without_probes_only_a_check_readmits() -> None:
    subject, clock = health(probes=False)
    sick, sound = Condition(), Condition()
    fail(subject, sick, 3)
    clock.now += 100

    assert subject.standings([sick, sound]) == [Standing.OUT, Standing.IN]
    subject.readmit(sick)
    assert subject.all_in


def test_the_first_verdict_counts() -> None:
    subject, _ = health(eject_after=1)
    sick = Condition()
    trial = subject.trial(sick)
    trial.ended()
    trial.failed()

    assert subject.all_in
