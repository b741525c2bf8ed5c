"""The journal takes no record while the database answers, and the gateway is killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from accounts.keys.keys import mint
from accounts.models import Scope
from tests.support.faults.case import SMALL_CAP, Case
from tests.support.live import Gateway
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.speech.caller import SpeechAccount
from tests.support.until import until

StartGateway = Callable[..., Gateway]
LEASE = 4.0
SLACK = 40.0
"""How much longer than a lease a loaded machine may take."""
LONG = "[[sim tokens=400 pace=40]]"


@pytest.fixture
def start_host(start_gateway: StartGateway, tmp_path: Path) -> Callable[[], Gateway]:
    """A function that starts a gateway whose journal takes no record, like one on a full disk."""

    def start() -> Gateway:
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "journal").write_bytes(b"not a directory")
        return start_gateway(
            SVC_DATA_DIR=str(tmp_path / "data"), SVC_ADMISSION_LEASE_SECONDS=str(LEASE)
        )

    return start


@pytest.mark.long
def test_a_gateway_killed_while_its_journal_takes_nothing_leaves_a_row_for_every_request(
    gateway: Gateway,
    model: str,
    broken: FaultProxy,
    start_host: Callable[[], Gateway],
    threads: ThreadPoolExecutor,
) -> None:
    case = Case(start_host(), model, [gateway.simulator.requests])
    speech_key = mint(gateway.organization, Scope.SPEECH, "test").secret
    account = SpeechAccount(case.gateway, gateway.organization, gateway.api_key, speech_key)
    taken = broken.accepted
    with ExitStack() as ending:
        ending.enter_context(account.session())
        futures = [
            threads.submit(
                case.ask, LONG, streamed=number % 2 == 0, max_completion_tokens=SMALL_CAP
            )
            for number in range(6)
        ]
        until(lambda: broken.accepted - taken == 6)
        case.gateway.command.kill()
        for future in futures:
            future.result()

    case.gateway = start_host()
    [speech] = until(account.rows, LEASE + SLACK)
    rows = until(lambda: found if len(found := gateway.rows()) == 6 else None, LEASE + SLACK)

    assert {row.outcome for row in rows} == {"interrupted"} == {speech.outcome}
    case.check(6)
