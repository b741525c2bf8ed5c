"""A failing request is found by its id: each line of the log that belongs to it has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import httpx2
import pytest

from core.monitoring import current_request
from core.monitoring.logs import RequestFormatter, log_unexpected
from tests.support.faults.case import publish_single
from tests.support.live import NO_TLS, Gateway
from tests.support.model_servers.scripted import Script, ScriptedServer, scripted_server


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


def lines_of(gateway: Gateway, request_id: str) -> list[str]:
    """What ``grep`` finds in the gateway's output."""
    return [line for line in gateway.command.log.read_text().splitlines() if request_id in line]


def test_a_model_server_that_speaks_no_http_is_found_by_the_id_of_the_request(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    scripted.say(Script([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"]), Script([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"]))
    model = publish_single(gateway, scripted.base_url, running=True)

    failed = gateway.chat("hello", model)

    assert failed.status_code == 500
    (line,) = lines_of(gateway, failed.headers["x-request-id"])
    assert "not HTTP: RemoteProtocolError" in line


def test_a_page_that_django_refuses_is_found_by_its_id(gateway: Gateway) -> None:
    answer = httpx2.post(f"{gateway.url}/console/login", data={"username": "a"}, verify=NO_TLS)

    assert answer.status_code == 403
    (line,) = lines_of(gateway, answer.headers["x-request-id"])
    assert "Forbidden (CSRF" in line


def test_a_line_has_the_id_once_and_lines_of_no_request_have_none() -> None:
    formatter = RequestFormatter("%(levelname)s %(message)s")
    written: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(formatter.format(record))

    keep = Keep()
    log, shared_log = (
        logging.getLogger("test_request_ids"),
        logging.getLogger("usage.ledger.commits"),
    )
    for each in (log, shared_log):
        each.addHandler(keep)

    async def answer() -> None:
        current_request.begin("req_1")
        log.warning("backend %s: away", "a")
        log_unexpected(log, "req_1", ValueError("secret"))
        shared_log.warning("the database is away")
        shared = asyncio.create_task(probe(), context=current_request.without_request())
        await asyncio.gather(shared, asyncio.create_task(own()))

    async def own() -> None:
        log.warning("of a task of the request")

    async def probe() -> None:
        log.warning("the store answers again")

    try:
        asyncio.run(answer())
    finally:
        for each in (log, shared_log):
            each.removeHandler(keep)
    first = [text.splitlines()[0] for text in written]
    assert first == [
        "WARNING req_1: backend a: away",
        "ERROR req_1: unexpected ValueError",
        "WARNING the database is away",
        "WARNING the store answers again",
        "WARNING req_1: of a task of the request",
    ]
