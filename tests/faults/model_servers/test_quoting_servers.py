"""Model servers whose refusals quote the request: what they quote harms nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product

import httpx2
import pytest

from tests.support.faults.case import publish_on, single
from tests.support.live import Gateway, fetch
from tests.support.model_servers.scripted import (
    Pause,
    Quotation,
    Script,
    ScriptedServer,
    body,
    head,
)
from tests.support.privacy import canary, holders, kept
from tests.support.processes import processor_seconds

KEY = canary("key")

HOSTILE = "+/" * 30_000
"""Each of its slashes once began a path that was read to the end of the text."""
LONGEST = 5.0
"""Seconds of the processor, where a hostile quotation once took more than a minute."""


def refusing(message: str) -> Script:
    return Script([body(json.dumps({"error": {"message": message}}).encode(), 400)])


def assert_alive(gateway: Gateway, while_running: list[Future[httpx2.Response]]) -> None:
    """Ask for ``/livez`` again and again while requests run."""
    while not all(each.done() for each in while_running):
        assert fetch(f"{gateway.url}/livez", timeout=120).status_code == 200


def test_a_server_that_quotes_a_hostile_caller_stops_nobody(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    model = publish_on(gateway, single(gateway, base_url=scripted.base_url, max_concurrency=4))
    scripted.say(*[refusing(f'Unrecognized schema: {{"type": "{HOSTILE}"}}')] * 2)

    chat = {"model": model, "messages": [{"role": "user", "content": "Hi."}]}

    with ThreadPoolExecutor(4) as threads:
        before = processor_seconds(gateway.command.worker)
        answers = [
            threads.submit(gateway.post, {**chat, "stream": streamed}, timeout=120)
            for streamed in (False, True) * 2
        ]
        assert_alive(gateway, answers)
        taken = processor_seconds(gateway.command.worker) - before

    assert taken < LONGEST
    for each in answers:
        answer = each.result()
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "backend_rejected_request")
        assert 'Unrecognized schema: {"type": "+/+/' in error["message"]
        assert error["message"].endswith("…")
        assert len(error["message"]) < 400


def test_a_server_that_quotes_its_headers_shows_no_key(
    gateway_with: Callable[..., Gateway], scripted: ScriptedServer
) -> None:
    key, token = KEY, canary("token") + '"\\'
    gateway = gateway_with(SVC_BACKEND_KEY_QUOTED=key)
    backend = single(
        gateway,
        base_url=scripted.base_url,
        api_key_env="SVC_BACKEND_KEY_QUOTED",
        headers={"X-Token": token, "X-Zone": "eu"},
    )
    model = publish_on(gateway, backend)
    for status, streamed in product((400, 401, 500), (False, True)):
        scripted.say(*[Script([Quotation(status)])] * 2)

        answer = gateway.chat("Hi.", model, stream=streamed)

        assert answer.status_code == (400 if status == 400 else 500)
        assert key not in answer.text
        assert canary_of(token) not in answer.text
        if status == 400:
            message = answer.json()["error"]["message"]
            assert '"authorization": "[secret]"' in message
            assert '"x-token": "[secret]"' in message
            assert '"x-zone": "eu"' in message
    sent = {each["headers"].get("authorization") for each in scripted.requests()}
    assert f"Bearer {key}" in sent
    stored = kept(gateway.command.log.parent)
    assert holders(stored, key) == []


def canary_of(token: str) -> str:
    return token.partition('"')[0]


@pytest.mark.parametrize(
    ("status", "told"), [(500, (500, "backend_error")), (400, (400, "backend_rejected_request"))]
)
def test_a_refusal_whose_body_does_not_come_is_answered_in_time(
    gateway: Gateway, scripted: ScriptedServer, status: int, told: tuple[int, str]
) -> None:
    """Waiting for the body, the gateway would take it for a server that does not answer."""
    patient = single(gateway, base_url=scripted.base_url, first_byte_seconds=10.0)
    model = publish_on(gateway, patient)
    silent = Script([head(status, "application/json", "content-length: 100"), Pause(60.0)])
    scripted.say(silent, silent)

    answer = gateway.post({"model": model, "messages": [{"role": "user", "content": "Hi."}]})

    assert (answer.status_code, answer.json()["error"]["code"]) == told
