"""A gateway with a victim at work, for the tests that let attackers loose on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import close_old_connections

from accounts.models import Organization
from inference.models.captures import DiagnosticCapture
from tests.resilience import tenants
from tests.resilience.measuring import measure
from tests.resilience.measuring.bounds import (
    CONNECTIONS,
    MEMORY,
    MOST_CAPTURES,
    PAGES_MEMORY,
    SETTINGS,
    SPOOLED,
    THREADS,
)
from tests.resilience.place import Place
from tests.resilience.place import served as serve
from tests.resilience.programs import VictimProgram
from tests.resilience.target import save
from tests.resilience.victim import PROBES, Kind
from tests.support.gateways import Served
from tests.support.live import database

SECONDS = 3.0
QUIET_SECONDS = 3.0
LONGEST_PROBE = 2.0
SLOWER = 10
SLOWER_BY = 5.0
"""The victim's median may be this many times the earlier one, and this many seconds more."""
EVENTS = 1
"""The least answers to an attacker for a test to be valid."""
NEW_KEYS = 150
ROWS = 20_000
"""Rows of an attacker's ledger."""
_SIMULATOR_TIMEOUTS = {
    "SVC_BACKEND_FIRST_BYTE_SECONDS": "30",
    "SVC_BACKEND_IDLE_SECONDS": "30",
    "SVC_SAMPLED_FRACTION": "0.01",
}
"""It is one process, and all of the attackers' chats reach it."""


@dataclass(frozen=True)
class Street:
    """A gateway, its victim at work, and the victim's samples without an attack."""

    place: Place
    victim: VictimProgram
    organization: Organization
    before: measure.Figures

    def attack(self, names: tuple[str, ...], directory: Path, *, idle: bool = False) -> None:
        """Run the attackers ``names`` at once as one new tenant, and check every bound.

        ``idle`` as in ``measure.attack``.
        """
        organization, tenant = tenants.make("attacker")
        tenants.fill_ledger(organization, self.organization, ROWS)
        target = directory / "attacker.json"
        save(self.place.target(tenant), target)

        found = measure.attack(
            names, target, self.victim, self.before, self.place, SECONDS, idle=idle
        )

        for name in names:
            assert sum(found.answers[name].values()) >= EVENTS, f"{name} did nothing"
        assert found.whole.errors == [], found.whole.errors
        assert found.longest_probe < max(LONGEST_PROBE, SLOWER * _longest_probe(self.before))
        assert found.taken.memory < MEMORY
        assert found.taken.pages_memory < PAGES_MEMORY
        assert found.taken.spooled < SPOOLED
        assert found.taken.threads < THREADS
        assert found.taken.connections < CONNECTIONS * len(self.place.workers)
        assert _captures(organization) <= MOST_CAPTURES
        for kind in Kind:
            # A page may begin before the last attacker and end after all.
            during = found.during if found.during.has(kind) else found.whole
            assert during.p50(kind) < SLOWER * self.before.p50(kind) + SLOWER_BY, kind


@contextmanager
def open_street(
    served: Served, directory: Path, django_db_blocker: Any, workers: int, **environment: str
) -> Iterator[Street]:
    """Start a gateway with ``workers`` on the live database of this test worker, and the victim."""
    settings = {
        **served.environment,
        **SETTINGS,
        **_SIMULATOR_TIMEOUTS,
        "SVC_DATA_DIR": str(directory),
        **environment,
    }
    with (
        django_db_blocker.unblock(),
        database(served.database_name),
        serve(directory, workers, settings) as place,
    ):
        organization, tenant = tenants.make_victim(NEW_KEYS)
        save(place.target(tenant), directory / "victim.json")
        with VictimProgram(directory / "victim.json") as victim:
            yield Street(place, victim, organization, measure.quiet(victim, QUIET_SECONDS))
        close_old_connections()


def _captures(organization: Organization) -> int:
    """The number of diagnostic captures of the organization."""
    return DiagnosticCapture.objects.filter(organization_id=str(organization.pk)).count()


def _longest_probe(figures: measure.Figures) -> float:
    return max(figures.longest(kind) for kind in PROBES)
