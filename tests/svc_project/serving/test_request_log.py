"""The request log as an operator reads it: one line of JSON for each request of a gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.clients.conversation import limited
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
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
