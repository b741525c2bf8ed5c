"""The log as an operator reads it: a line of JSON for each request, ids, and few lines of a flood."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from core.monitoring import current_request, logs
from core.monitoring.logs import RequestFormatter, log_unexpected
from tests.support.clients.conversation import limited
from tests.support.clients.raw_client import RawClient
from tests.support.faults.case import publish_single
from tests.support.gateways import IMPATIENT
from tests.support.live import NO_TLS, Gateway
from tests.support.model_servers.scripted import Script, ScriptedServer, scripted_server
from tests.support.speech.accounts import speech_account
from tests.support.until import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SECRET = "the-launch-is-on-monday"


@pytest.fixture
def logged(gateway_with: Callable[..., Gateway]) -> Gateway:
    return gateway_with(SVC_REQUEST_LOG="true")


def line_of(gateway: Gateway, request_id: str) -> dict[str, Any]:
    """The one line of a request; its times are checked and left out."""

    def find() -> list[str]:
        written = gateway.command.log.read_text().splitlines()
        return [each for each in written if request_id in each and each.startswith("{")]

    (line,) = until(find)
    found: dict[str, Any] = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found.pop("request_id") == request_id
    assert found.pop("duration_ms") >= found.pop("first_byte_ms", 0) >= 0
    return found


def test_an_answer_has_its_key_model_backend_and_tokens(logged: Gateway) -> None:
    answer = logged.post(
        {
            "model": "acme/demo-8b",
            "messages": [{"role": "user", "content": f"{SECRET} say: yes"}],
        },
        headers={"traceparent": PARENT},
    )

    usage = answer.json()["usage"]
    line = line_of(logged, answer.headers["x-request-id"])
    assert line.pop("queue_ms") >= 0
    assert line.pop("backend")
    assert line == {
        "trace_id": TRACE,
        "organization_id": str(logged.organization.pk),
        "key_prefix": logged.api_key.prefix,
        "surface": "inference",
        "method": "POST",
        "route": "chat",
        "model": "acme/demo-8b",
        "streamed": False,
        "attempts": 1,
        "status": 200,
        "outcome": "success",
        "prompt_tokens": usage["prompt_tokens"],
        "completion_tokens": usage["completion_tokens"],
    }
    written = logged.command.log.read_text()
    assert SECRET not in written
    assert logged.key not in written


def test_each_refused_request_has_a_line_with_its_code(logged: Gateway) -> None:
    full = limited(logged, requests_per_minute=1)
    full.sees_changes()
    refused = {
        400: logged.post(b"{"),
        401: logged.post({}, headers={"authorization": f"Bearer {SECRET}"}),
        404: logged.chat("hello", SECRET),
        405: httpx2.get(f"{logged.base_url}/chat/completions", verify=NO_TLS),
        429: [full.chat("say: a") for _ in range(3)][-1],
    }

    for status, answer in refused.items():
        assert answer.status_code == status
        line = line_of(logged, answer.headers["x-request-id"])
        assert line["status"] == status
        error = answer.json()["error"]
        assert line["code"] == (error["code"] or error["type"])
        assert line["surface"] == "inference"
        assert line["route"] == "chat"
        assert "model" not in line or line["model"] == "acme/demo-8b"
    assert SECRET not in logged.command.log.read_text()


def test_what_the_protocol_and_the_host_check_refuse_has_a_line(logged: Gateway) -> None:
    with RawClient(logged) as raw:
        raw.send(f"NOT {SECRET}\r\n\r\n".encode())
        raw.rest()
    head = raw.received.decode().partition("\r\n\r\n")[0]
    request_id = head.partition("x-request-id: ")[2].partition("\r\n")[0]
    broken = line_of(logged, request_id)
    other = httpx2.get(
        f"{logged.url}/v1/models?q={SECRET}", headers={"host": "other.example"}, verify=NO_TLS
    )

    assert broken["route"] == "protocol"
    assert broken["status"] == 400
    unknown = line_of(logged, other.headers["x-request-id"])
    assert unknown["status"] == 400
    assert unknown["route"] == "refused"
    assert SECRET not in logged.command.log.read_text()


def test_views_have_a_line_with_the_organization_of_the_key(logged: Gateway) -> None:
    logged.sees_changes()
    models = logged.get("/models")
    page = httpx2.get(f"{logged.url}/console/login?next={SECRET}", verify=NO_TLS)

    line = line_of(logged, models.headers["x-request-id"])
    assert line["organization_id"] == str(logged.organization.pk)
    assert line["key_prefix"] == logged.api_key.prefix
    assert line_of(logged, page.headers["x-request-id"]) == {
        "surface": "inference",
        "method": "GET",
        "route": "pages",
        "status": 200,
    }
    assert SECRET not in logged.command.log.read_text()


def test_a_probe_has_a_line_only_when_it_is_refused(logged: Gateway) -> None:
    alive = httpx2.get(f"{logged.url}/livez", verify=NO_TLS)
    refused = httpx2.post(f"{logged.url}/livez", verify=NO_TLS)

    assert line_of(logged, refused.headers["x-request-id"])["status"] == 405
    assert alive.headers["x-request-id"] not in logged.command.log.read_text()


def test_speech_and_sessions_have_their_characters(logged: Gateway) -> None:
    speech = speech_account(logged)
    logged.sees_changes()
    spoken = speech.speak(f"Hello {SECRET}.")
    with speech.session() as session:
        session.send(type="text", text="One. Two.")
        session.send(type="done")
        session.rest()
        assert session.socket.response is not None
        session_id = session.socket.response.headers["x-request-id"]

    line = line_of(logged, spoken.headers["x-request-id"])
    assert line.pop("audio_ms") > 0
    assert line == {
        "organization_id": str(speech.organization.pk),
        "key_prefix": speech.api_key.prefix,
        "surface": "speech",
        "method": "POST",
        "route": "speech",
        "voice": "ava",
        "backend": "espeak",
        "status": 200,
        "outcome": "success",
        "characters": len(f"Hello {SECRET}."),
    }
    whole = line_of(logged, session_id)
    assert (whole["route"], whole["status"], whole["outcome"]) == ("stream", 101, "success")
    assert whole["characters"] == len("One. Two.")
    assert SECRET not in logged.command.log.read_text()


def test_a_gateway_writes_none_by_default(gateway: Gateway) -> None:
    answer = gateway.chat("say: yes")

    assert answer.headers["x-request-id"] not in gateway.command.log.read_text()


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


TIMES = 30
REFUSED = {
    "a head": b"GET /v1/models HTTP/1.1\r\nno field\r\n",
    "a body": b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n"
    b"authorization: Bearer KEY\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n",
}
"""Each ends in the answer of the server, not of the application."""


@pytest.mark.long
def test_refused_requests_cannot_fill_the_log(start_gateway: Callable[..., Gateway]) -> None:
    # One of its own: other tests' refused requests would count in the same minute.
    gateway = start_gateway()
    with httpx2.Client(verify=NO_TLS, timeout=60) as client:
        client.get(f"{gateway.url}/console/login")
        fields = "&".join(f"f{number}=1" for number in range(1100))
        for _ in range(TIMES):
            forged = client.post(f"{gateway.url}/console/login", data={"username": "a"})
            # More fields than Django takes (DATA_UPLOAD_MAX_NUMBER_FIELDS).
            crowded = client.post(
                f"{gateway.url}/console/login",
                content=fields,
                headers={"content-type": "application/x-www-form-urlencoded"},
            )
            with RawClient(gateway) as raw:
                raw.send(b"NOT HTTP\r\n\r\n")
                raw.rest()
    written = gateway.command.log.read_text()

    assert (forged.status_code, crowded.status_code) == (403, 400)
    assert 1 <= written.count("Forbidden (CSRF") <= logs.MOST_A_MINUTE
    assert written.count("Invalid HTTP request received") <= logs.MOST_A_MINUTE
    assert 1 <= written.count("TooManyFieldsSent") <= logs.MOST_A_MINUTE
    assert "Traceback" not in written


def is_closed(client: RawClient) -> bool:
    try:
        client.send(b"a")
    except ConnectionError:
        return True
    return False


def test_nothing_is_written_behind_the_last_answer(gateway_with: Callable[..., Gateway]) -> None:
    """The time for a head ends, and a body is asked for, while the rest of the bytes is dropped."""
    gateway = gateway_with(**IMPATIENT)
    for sent in REFUSED.values():
        with RawClient(gateway) as client:
            client.send(sent.replace(b"KEY", gateway.key.encode()))
            received = client.rest()
            until(partial(is_closed, client))
        assert received.startswith(b"HTTP/1.1 400 ")
        assert received.count(b"HTTP/1.1") == 1

    assert "Traceback" not in gateway.command.log.read_text()


def record(name: str, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "", 0, text, values, None)


def test_dropped_lines_are_counted_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("core.monitoring.logs.time.monotonic", lambda: now)
    few = logs.LimitRepeatedLines()
    written = [few.filter(record("django.request", "%s: %s", "a", n)) for n in range(25)]
    other = few.filter(record("django.request", "another", 1))
    pages = [
        few.filter(record("svc_project.gate.page_server", "%s: %s", "a", n)) for n in range(25)
    ]
    ours = [few.filter(record("usage.ledger.ledger", "%s", n)) for n in range(25)]
    now += 61

    first = record("django.request", "%s: %s", "a", "b")
    assert few.filter(first)
    assert written == [True] * 10 + [False] * 15
    assert other
    assert pages == written
    assert all(ours)
    assert first.getMessage() == "a: b (and 15 more like it before)"
