"""Refusals and endings of WebSocket sessions: statuses, error messages, close codes."""

from __future__ import annotations

import json
import socket as sockets
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from accounts.keys.keys import revoke
from accounts.models import Scope
from tests.support.live import NO_TLS, Gateway
from tests.support.readers import signed_in
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until
from usage.models import SpeechRow


def error_then_close(conversation: Any) -> tuple[str, str, int]:
    """``type`` and ``message`` of the error frame, and the close code; frames before are skipped."""
    messages = [message for message in conversation.rest() if isinstance(message, dict)]
    error = messages[-1]
    assert set(error) == {"type", "error"}, error
    assert error["type"] == "error"
    assert set(error["error"]) == {"message", "type"}
    return error["error"]["type"], error["error"]["message"], conversation.close_code


START = {"type": "start", "voice": "ava"}
KEPT_OPEN = {**START, "keep_open": True}
TEXT = {"type": "text", "text": "Hi." * 100}
DONE, CLEAR, CLOSE = ({"type": kind} for kind in ("done", "clear", "close"))
TOO_MUCH = [{"type": "text", "text": "word " * 800}] * 6


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([DONE], "'start'"),
        ([START, START], "started"),
        ([START, DONE], "no words"),
        ([START, TEXT, DONE, TEXT], "'done'"),
        ([START, *TOO_MUCH], "20000"),
        ([START, CLEAR], "'keep_open'"),
        ([{**START, "keep_open": 1}], "'keep_open'"),
        ([KEPT_OPEN, TEXT, CLOSE, CLEAR], "'close'"),
        ([KEPT_OPEN, *TOO_MUCH], "'done'"),
    ],
)
def test_a_bad_message_ends_the_session(
    speech: SpeechAccount, messages: list[dict[str, Any]], named: str
) -> None:
    with speech.connect() as socket:
        conversation = Conversation(socket)
        for message in messages:
            conversation.send(**message)
        kind, said, code = error_then_close(conversation)

    assert (kind, code) == ("invalid_request_error", 4400)
    assert named in said


@pytest.mark.parametrize("message", ["", '{"type": NaN}', b"binary"])
def test_an_invalid_message_ends_the_session(speech: SpeechAccount, message: str | bytes) -> None:
    with speech.session() as session:
        session.socket.send(message)
        kind, _, code = error_then_close(session)

    assert (kind, code) == ("invalid_request_error", 4400)


@pytest.mark.parametrize("size", [70_000, 300_000])
def test_a_message_that_is_too_large_ends_the_session(speech: SpeechAccount, size: int) -> None:
    with speech.session() as session:
        session.socket.send(json.dumps({"type": "text", "text": "", "x": "y" * size}))

        if size < 256 * 1024:
            assert error_then_close(session)[0] == "invalid_request_error"
        assert session.close_code == 1009


def test_an_unknown_voice_ends_the_session(speech: SpeechAccount) -> None:
    with speech.connect() as socket:
        conversation = Conversation(socket)
        conversation.send(type="start", voice="nobody")
        kind, said, code = error_then_close(conversation)

    assert (kind, code) == ("proxy_error", 4404)
    assert "GET /v1/models" in said
    assert speech.rows() == []


def test_a_bad_key_or_one_of_another_scope_is_a_401_at_the_upgrade(speech: SpeechAccount) -> None:
    for key in ("sk_nonsense", speech.mint(Scope.INFERENCE)):
        status, answer, body = refused_upgrade(speech, headers={"authorization": f"Bearer {key}"})

        assert status == 401
        assert answer["www-authenticate"] == "Bearer"
        assert body["error"]["type"] == "auth_error"


def test_a_session_of_the_console_opens_no_websocket(speech: SpeechAccount) -> None:
    browser = signed_in(speech.organization)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())

    assert cookies
    assert refused_upgrade(speech, headers={"cookie": cookies})[0] == 401


def refused_upgrade(speech: SpeechAccount, **options: Any) -> tuple[int, Any, Any]:
    """Status, headers and body of a refused upgrade, whose form was checked."""
    with pytest.raises(InvalidStatus) as refusal, speech.connect(**options):
        pass
    answer = refusal.value.response
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["content-type"] == "application/json"
    assert answer.body is not None
    return answer.status_code, answer.headers, json.loads(answer.body)


def test_another_path_and_the_other_surface_are_404(speech: SpeechAccount) -> None:
    host = speech.url.removeprefix("http://")
    elsewhere = refused_upgrade(speech, address=f"ws://{host}/v1/audio/other")
    inference = refused_upgrade(
        speech, address=f"ws://127.0.0.1:{speech.gateway.port}/v1/audio/speech/stream"
    )

    assert (elsewhere[0], elsewhere[2]["error"]["type"]) == (404, "not_found_error")
    assert set(elsewhere[2]["error"]) == {"message", "type"}
    assert (inference[0], inference[2]["error"]["type"]) == (404, "not_found_error")


def test_a_host_that_is_not_served_is_refused(speech: SpeechAccount) -> None:
    port = speech.gateway.speech_port
    with sockets.create_connection(("127.0.0.1", port)) as raw:
        status, _, body = refused_upgrade(
            speech, address=f"ws://evil.example:{port}/v1/audio/speech/stream", sock=raw
        )

    assert (status, body["error"]["type"]) == (400, "invalid_request_error")


def test_a_plain_get_of_the_stream_is_no_upgrade(speech: SpeechAccount) -> None:
    url = f"{speech.url}/v1/audio/speech/stream"
    answer = httpx2.get(url, headers=speech.headers, verify=NO_TLS, timeout=60)

    assert answer.status_code == 426
    assert answer.headers["upgrade"] == "websocket"
    assert "WebSocket client" in answer.json()["error"]["message"]


def test_a_revoked_key_ends_an_open_session(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("One sentence is spoken. Then ")
        session.frame()
        revoke(speech.api_key)
        kind, _, code = error_then_close(session)

    assert (kind, code) == ("auth_error", 4401)
    row = speech.row_when_written()
    assert (row.sentences, row.error_type) == (1, "auth_error")
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4401)


def test_the_daily_quota_ends_a_session_after_the_allowed_sentences(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_characters_per_day=40)
    with speech.session() as session:
        session.text("Twenty characters!! " * 5)
        session.done()
        messages = session.rest()

    assert [type(message) for message in messages] == [bytes, bytes, dict]
    assert messages[2]["error"]["type"] == "quota_error"  # type: ignore[call-overload]
    assert session.close_code == 4429
    row = speech.row_when_written()
    assert row.characters == 40
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4429)


def test_a_session_is_one_request_of_the_minute(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=1)
    with speech.session() as session:
        session.text("Hello there. And here. ")
        session.done()
        session.rest()
    with speech.connect() as socket:
        second = Conversation(socket)
        second.send(type="start", voice="ava")
        kind, said, code = error_then_close(second)

    assert (kind, code) == ("quota_error", 4429)
    assert "minute" in said
    assert len(speech.rows()) == 1


# -- a separate gateway --------------------------------------------------------------------------


@pytest.fixture
def impatient(gateway_with: Callable[..., Gateway]) -> SpeechAccount:
    """An account of a gateway with timeouts of two or three seconds."""
    return speech_account(gateway_with(SVC_SPEECH_START_SECONDS="2", SVC_SPEECH_IDLE_SECONDS="3"))


def test_a_session_without_a_start_is_idle(impatient: SpeechAccount) -> None:
    began = time.monotonic()
    with impatient.connect() as socket:
        kind, said, code = error_then_close(Conversation(socket))

    assert time.monotonic() - began >= 2
    assert (kind, code) == ("invalid_request_error", 4408)
    assert "'start'" in said
    assert impatient.rows() == []


@pytest.mark.long
def test_the_idle_timeout_starts_at_the_last_message_or_frame(impatient: SpeechAccount) -> None:
    """An incomplete sentence is not spoken."""
    with impatient.session() as session:
        for text in ("", "He"):
            session.text(text)
            time.sleep(1.6)
        sent = time.monotonic()
        session.text("llo there. And then ")
        session.frame()
        kind, said, code = error_then_close(session)

    assert time.monotonic() - sent >= 3
    assert (kind, code) == ("invalid_request_error", 4408)
    assert "'done'" in said
    row = impatient.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4408)
    assert (row.sentences, row.characters) == (1, len("Hello there. "))


def test_refused_upgrades_leave_no_line_in_the_log(impatient: SpeechAccount) -> None:
    """They need no key, so each would be a way to fill the log."""
    host = impatient.url.removeprefix("http://")
    log = impatient.gateway.command.log
    before = len(log.read_text())
    for _ in range(3):
        refused_upgrade(impatient, headers={"authorization": "Bearer sk_nonsense"})
        refused_upgrade(impatient, address=f"ws://{host}/v1/audio/other")
    with impatient.session() as session:
        session.text("Hello there.")
        session.done()
        session.rest()

    written = log.read_text()[before:]
    assert "sk_nonsense" not in written
    # Mistakes in the catalogs of other tests are logged there too.
    assert not [
        line
        for line in written.splitlines()
        if ("ERROR" in line or "WARNING" in line) and ".snapshot " not in line
    ]


def journal_of(speech: SpeechAccount) -> str:
    """The journal of the account's gateway, if it has records of the account."""
    directory = speech.gateway.command.log.parent / "journal"
    notes = (path.read_text() for path in directory.glob("*.log"))
    return next((text for text in notes if str(speech.organization.pk) in text), "")


@pytest.mark.long
def test_a_session_of_a_killed_server_has_its_row(start_gateway: Callable[..., Gateway]) -> None:
    killed = speech_account(start_gateway())
    with killed.session() as session:
        session.text("Hello there. And then ")
        session.frame()
        # The frame is sent first and recorded then.
        until(lambda: "progress" in journal_of(killed))
        killed.gateway.command.kill()
        assert session.rest() == []
    start_gateway()
    row = killed.row_when_written()

    assert (row.outcome, row.sentences, row.characters) == ("interrupted", 1, len("Hello there. "))
    assert row.close_code is None
    assert SpeechRow.objects.filter(request_id=row.request_id).count() == 1
