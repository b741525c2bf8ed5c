"""``manage.py runserver``: Daphne serves both surfaces at a developer's desk, WebSocket included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest

from tests.support.gateways import Served
from tests.support.live import NO_TLS, Command, Gateway, events, free_port
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation


@pytest.fixture
def at_a_desk(gateway: Gateway, served: Served) -> Iterator[Gateway]:
    """The gateway of the development server; its speech surface has the name ``localhost``."""
    port = free_port()
    command = Command(
        ["runserver", "--noreload", f"127.0.0.1:{port}"],
        {**served.environment, "SPEECH_HOSTS": "localhost"},
        served.command.log.with_name(f"runserver-{port}.log"),
    )
    try:
        command.wait_for(f"127.0.0.1:{port}")
        yield replace(gateway, port=port, speech_port=port)
    finally:
        command.stop()
    assert "Starting ASGI/Daphne" in command.log.read_text()


def test_runserver_answers_chats_and_streams_and_writes_their_rows(at_a_desk: Gateway) -> None:
    whole = at_a_desk.chat("say: hello")
    stream = at_a_desk.chat("say: hello", stream=True)

    assert whole.json()["choices"][0]["message"]["content"] == "hello"
    assert events(stream.text)[-1] == "[DONE]"
    rows = at_a_desk.rows_when(2)
    assert [row.outcome for row in rows] == ["success", "success"]


def test_runserver_speaks_over_http_and_websocket(at_a_desk: Gateway) -> None:
    account = speech_account(at_a_desk)
    address = f"localhost:{at_a_desk.port}/v1/audio/speech"

    spoken = httpx2.post(
        f"http://{address}",
        json={"voice": "ava", "input": "Hello there."},
        headers=account.headers,
        timeout=60,
        verify=NO_TLS,
    )
    with account.connect(address=f"ws://{address}/stream") as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava")
        assert session.receive()["type"] == "ready"
        session.text("Hello there. ")
        session.done()
        messages = session.rest()

    assert spoken.status_code == 200, spoken.text
    assert spoken.content.startswith(b"RIFF")
    assert messages[-1] == {"type": "session.done"}
