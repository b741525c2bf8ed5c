"""Each attacker alone against a gateway that serves a victim meanwhile.

The bounds are loose, since other load of the machine is measured too; the published measurements
come from ``python -m tests.resilience.neighbours``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import close_old_connections

from accounts.models import Organization
from inference.models.captures import DiagnosticCapture
from tests.resilience import tenants
from tests.resilience.attackers import NAMED
from tests.resilience.measuring import measure
from tests.resilience.measuring.bounds import (
    CONNECTIONS,
    MEMORY,
    MOST_CAPTURES,
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
DATABASE = ("read_key", "console_user", "invented_keys", "slow_readers", "captures")
"""Attackers of the database, which are tried on PostgreSQL too."""
NEW_KEYS = 150
_SIMULATOR_TIMEOUTS = {
    "SVC_BACKEND_FIRST_BYTE_SECONDS": "30",
    "SVC_BACKEND_IDLE_SECONDS": "30",
    "SVC_SAMPLED_FRACTION": "0.01",
}
"""It is one process, and all of the attackers' chats reach it."""
ROWS = 20_000


@dataclass(frozen=True)
class Street:
    """A gateway, its victim at work, and the victim's samples without an attack."""

    place: Place
    victim: VictimProgram
    organization: Organization
    before: measure.Figures


@pytest.fixture(scope="module")
def street(
    served: Served, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Street]:
    directory = tmp_path_factory.mktemp("neighbours")
    environment = {
        **served.environment,
        **SETTINGS,
        **_SIMULATOR_TIMEOUTS,
        "SVC_DATA_DIR": str(directory),
    }
    with (
        django_db_blocker.unblock(),
        database(served.database_name),
        serve(directory, 1, environment) as place,
    ):
        organization, tenant = tenants.make_victim(NEW_KEYS)
        save(place.target(tenant), directory / "victim.json")
        with VictimProgram(directory / "victim.json") as victim:
            yield Street(place, victim, organization, measure.quiet(victim, QUIET_SECONDS))
        close_old_connections()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in DATABASE else pytest.mark.sqlite) for name in NAMED],
)
def test_an_attack_does_not_slow_down_the_victim(street: Street, tmp_path: Path, name: str) -> None:
    organization, tenant = tenants.make("attacker")
    tenants.fill_ledger(organization, street.organization, ROWS)
    save(street.place.target(tenant), tmp_path / "attacker.json")

    found = measure.attack(
        [name], tmp_path / "attacker.json", street.victim, street.before, street.place, SECONDS
    )

    assert sum(found.answers[name].values()) >= EVENTS, "the attacker did nothing"
    assert found.during.errors == []
    assert found.longest_probe < max(LONGEST_PROBE, SLOWER * _longest_probe(street.before))
    assert found.taken.memory < MEMORY
    assert found.taken.spooled < SPOOLED
    assert found.taken.threads < THREADS
    assert found.taken.connections < CONNECTIONS
    assert _captures(organization) <= MOST_CAPTURES
    for kind in Kind:
        before, during = street.before.p50(kind), found.during.p50(kind)
        assert during < SLOWER * before + SLOWER_BY, kind


def _captures(organization: Organization) -> int:
    """The number of diagnostic captures of the organization."""
    return DiagnosticCapture.objects.filter(organization_id=str(organization.pk)).count()


def _longest_probe(figures: measure.Figures) -> float:
    return max(figures.longest(kind) for kind in PROBES)
