"""Connections to PostgreSQL that the threads of views keep between requests."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
import pytest

from accounts.models import Scope
from svc_project.gate.view_threads import KEPT_SECONDS
from tests.support.live import NO_TLS, Gateway
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

REQUESTS = 12

pytestmark = pytest.mark.postgresql


@pytest.fixture
def read_usage(behind_database_proxy: Gateway) -> Callable[[], int]:
    """Reads the usage of a month from a gateway behind ``to_database``; returns the status."""
    gateway = behind_database_proxy
    headers = {"authorization": f"Bearer {gateway.mint(Scope.READ)}"}

    def read() -> int:
        answer = httpx2.get(f"{gateway.url}/v1/usage", headers=headers, timeout=60, verify=NO_TLS)
        return answer.status_code

    assert read() == 200
    return read


@pytest.mark.long
def test_requests_share_a_connection_until_none_comes_for_a_while(
    read_usage: Callable[[], int], to_database: FaultProxy
) -> None:
    before = to_database.accepted

    assert [read_usage() for _ in range(REQUESTS)] == [200] * REQUESTS

    # The background work of the gateway may open one or two in the same moments.
    assert to_database.accepted - before < REQUESTS // 2
    kept = to_database.open_connections
    assert until(lambda: to_database.open_connections < kept, 3 * KEPT_SECONDS)
    assert read_usage() == 200


def test_a_kept_connection_that_the_database_closed_fails_no_request(
    read_usage: Callable[[], int], to_database: FaultProxy
) -> None:
    for _ in range(3):
        to_database.reset()

        assert read_usage() == 200
