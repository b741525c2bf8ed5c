"""What the attacks rest on, and what must still work: one shared connection, and WebSockets."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from accounts.models import Scope
from tests.resilience.proxies.attacks import INFERENCE_HOST, SPEECH_HOST, UPGRADES, chat, request
from tests.resilience.proxies.conftest import Opened
from tests.resilience.proxies.connection import Answer, Connection
from tests.resilience.proxies.fronts import CASES, Front
from tests.support.live import Gateway
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.speech.caller import SENTENCE, Conversation, SpeechAccount
from tests.support.until import until

STREAM = "/v1/audio/speech/stream"


@pytest.mark.parametrize("front", CASES, ids=str)
def test_organizations_and_surfaces_share_one_connection(
    front: Front, hidden: Gateway, attacker: SpeechAccount, tmp_path: Path
) -> None:
    """Two organizations share one upstream connection here, which the rounds depend on."""
    other = attacker.mint(Scope.INFERENCE)

    async def ask(port: int) -> list[int]:
        clients = [Connection(port), Connection(port), Connection(port)]
        asked = [
            request("POST /v1/chat/completions", INFERENCE_HOST, key, body=chat("say: hello"))
            for key in (hidden.key, other)
        ]
        asked.append(request("GET /v1/models", SPEECH_HOST, attacker.key))
        statuses = []
        for _ in range(10):
            for client, content in zip(clients, asked, strict=True):
                statuses.append((await client.ask(content)).status)
        for client in clients:
            client.close()
        return statuses

    with FaultProxy(hidden.port) as counter, front.start(tmp_path, counter.port) as port:
        assert asyncio.run(ask(port)) == [200] * 30
        assert counter.accepted == 1


def speak(opened: Opened, account: SpeechAccount) -> None:
    """Have a short session through the proxy."""
    through = socket.create_connection(("127.0.0.1", opened.port))
    with account.connect(address=f"ws://{SPEECH_HOST}{STREAM}", sock=through) as connected:
        conversation = Conversation(connected)
        conversation.send(type="start", voice="ava")
        assert conversation.receive()["type"] == "ready"
        conversation.text(SENTENCE)
        conversation.done()
        told = conversation.rest()
        assert sum(len(frame) for frame in told if isinstance(frame, bytes)) > 20_000
        assert conversation.close_code == 1000


def refused(opened: Opened, key: str) -> list[Answer]:
    """The answers to upgrades that the gateway does not take, one behind the other."""
    websocket, body = UPGRADES["websocket"], b"\r\n" * 4_000 + b"GET /livez HTTP/1.1\r\n\r\n"
    asked = (
        request(f"POST {STREAM}", SPEECH_HOST, key, *UPGRADES["h2c"], body=body),
        request(f"GET {STREAM}", SPEECH_HOST, key, *UPGRADES["websocket and h2c"], body=body),
        request(f"GET {STREAM}", SPEECH_HOST, key, *websocket, body=body),
        request(f"POST {STREAM}", SPEECH_HOST, key, *websocket),
        request("GET /v1/nothing", SPEECH_HOST, key, *websocket),
        request(f"GET {STREAM}", SPEECH_HOST, None, *websocket),
    )

    async def ask() -> list[Answer]:
        found = []
        for content in asked:
            connection = Connection(opened.port)
            try:
                found.append(await connection.ask(content))
            finally:
                connection.close()
        return found

    return asyncio.run(ask())


def test_a_websocket_works_before_and_after_refused_upgrades(
    opened: Opened, attacker: SpeechAccount
) -> None:
    speak(opened, attacker)
    statuses = [answer.status for answer in refused(opened, attacker.key)]
    speak(opened, attacker)

    assert all(400 <= status < 500 for status in statuses), statuses
    rows = until(lambda: rows if len(rows := attacker.rows()) > 1 else None)
    assert [(row.outcome, row.characters) for row in rows] == [("success", len(SENTENCE))] * 2
