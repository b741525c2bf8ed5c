"""A gateway that serves a victim while attackers run: each alone, and all twelve at once.

The bounds are loose, since other load of the machine is measured too; the published measurements
come from ``python -m tests.resilience.neighbours``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.resilience.attackers import NAMED
from tests.resilience.measuring.street import Street, open_street
from tests.support.gateways import Served

pytestmark = pytest.mark.long

DATABASE = ("read_key", "console_user", "invented_keys", "slow_readers", "captures")
"""Attackers of the database, which are tried on PostgreSQL too."""


@pytest.fixture(scope="module")
def street(
    served: Served, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Street]:
    """A gateway with one worker, in which the views run too."""
    directory = tmp_path_factory.mktemp("neighbours")
    with open_street(served, directory, django_db_blocker, 1) as opened:
        yield opened


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in DATABASE else pytest.mark.sqlite) for name in NAMED],
)
def test_an_attack_does_not_slow_down_the_victim(street: Street, tmp_path: Path, name: str) -> None:
    street.attack((name,), tmp_path)


@pytest.mark.postgresql
@pytest.mark.redis
@pytest.mark.last
@pytest.mark.timeout(300)  # it starts sixteen programs, twelve of which get only idle processors
def test_all_attacks_at_once_do_not_stop_the_victim(
    served: Served, tmp_path: Path, django_db_blocker: Any
) -> None:
    """Two workers, with a page process beside them.

    Where twelve attackers share the processors with a loaded test machine, the page process gets too
    little of them, and refuses pages after ``SVC_DJANGO_QUEUE_SECONDS``.
    """
    redis = os.environ["SVC_TEST_REDIS_URL"]
    with open_street(served, tmp_path, django_db_blocker, 2, REDIS_URL=redis) as opened:
        opened.attack(NAMED, tmp_path, idle=True)
