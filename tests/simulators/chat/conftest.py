"""One simulator for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.model_servers.simulator import RunningSimulator, running_simulator


@pytest.fixture(scope="session")
def simulator() -> Iterator[RunningSimulator]:
    with running_simulator() as running:
        yield running
