"""A running ledger compares the clock of its host with that of the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from core.database import clocks
from core.monitoring.problems import Problem
from svc_project.serving import monitoring
from tests.support.ledger.ledgers import read, running_ledger
from tests.support.until import until_async
from usage.ledger import commits
from usage.ledger.journal.adoption import AdoptionResult
from usage.ledger.writer import Adopted

pytestmark = pytest.mark.django_db(transaction=True)


def move_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(clocks, "now", lambda: datetime.now(UTC) + timedelta(seconds=seconds))


@pytest.mark.postgresql
@pytest.mark.parametrize(("seconds", "words"), [(300, "s ahead of"), (-90, "s behind")])
async def test_a_wrong_clock_is_logged_noted_and_measured_until_it_is_right(
    seconds: int, words: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(commits, "_ROUND_SECONDS", 0.05)
    move_clock(monkeypatch, seconds)
    async with running_ledger() as ledger:
        monkeypatch.setattr(monitoring, "ledger", ledger)
        await until_async(lambda: ledger.state.clock_difference is not None)

        assert ledger.state.clock_difference == pytest.approx(seconds, abs=0.9)
        assert Problem.CLOCKS_APART in monitoring.readiness_notes()
        assert Problem.CLOCKS_APART not in monitoring.unready_reasons()
        assert measured() == [ledger.state.clock_difference]

        move_clock(monkeypatch, 0)
        await until_async(lambda: abs(ledger.state.clock_difference or 0) < 1)
        assert Problem.CLOCKS_APART not in monitoring.readiness_notes()
    said = [each.getMessage() for each in caplog.records if "clock" in each.getMessage()]
    assert [words in said[0], "agree again" in said[1], len(said)] == [True, True, 2]


async def test_a_clock_that_sways_around_the_limit_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is wrong above one second, and right again below half a second."""
    rounds = commits.AdoptionRounds(lambda: None)
    try:
        for ahead in (0.99, 1.01, 0.99, -1.01, 0.6, 1.2, 0.4, 0.99, 0.6, 0.4):
            found = AdoptionResult(clock_difference=ahead)
            rounds._end(Adopted(found, over=True), refused_too=False)
            assert rounds.clock_difference == ahead
    finally:
        rounds.close()

    said = [each.getMessage() for each in caplog.records]
    assert ["1.0 s ahead of" in said[0], "agree again" in said[1], len(said)] == [True, True, 2]


def measured() -> list[float]:
    return [
        sample.value
        for family in monitoring.own_families()
        if family.name == "svc_ledger_clock_difference_seconds"
        for sample in family.samples
    ]


@pytest.mark.sqlite
async def test_a_database_without_a_clock_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    move_clock(monkeypatch, 300)
    async with running_ledger() as ledger:
        monkeypatch.setattr(monitoring, "ledger", ledger)
        assert await read(clocks.clock_difference) is None
        assert Problem.CLOCKS_APART not in monitoring.readiness_notes()
        assert measured() == []


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("ahead", "took", "least"),
    [(0, 0, 0), (5, 0, 5), (-5, 0, -5), (5, 3, 5), (-5, 3, -2), (-5, 6, 0), (0, 60, 0)],
)
def test_the_time_of_the_query_is_no_difference(
    ahead: float, took: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``took``: seconds from the reading of this host's clock to the answer."""
    move_clock(monkeypatch, ahead)
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=count(step=took).__next__))

    assert clocks.clock_difference() == pytest.approx(least, abs=0.9)
