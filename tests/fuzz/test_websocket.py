"""Any frames on the speech stream get the contract's messages and close codes; the server goes on."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from socket import SHUT_RDWR
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from speech.api.openapi_messages import CLOSES, SERVER_MESSAGES
from tests.support.clients.raw_client import RawClient
from tests.support.fuzzing.connections import Player
from tests.support.fuzzing.mutations import damaged
from tests.support.fuzzing.seeds import BOUNDS, SECONDS, batches
from tests.support.fuzzing.websocket_conversations import Conversations as Connections
from tests.support.fuzzing.websocket_reading import faults_of, is_over
from tests.support.live import Gateway, fetch
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until

UNREADABLE = {1002, 1007}
"""Close codes of the protocol itself, without a message (RFC 6455, section 7.4.1)."""

START = {"type": "start", "voice": "ava", "response_format": "pcm"}
TEXT = st.sampled_from(
    ["Hi. ", "One two. Three", "", "...", "[pause:100ms]", "[laughs]", "\n", "\u8fd9\u3002\n"]
) | st.sampled_from(
    [
        "<speak>",
        "<speak><s>Hi. </s>",
        "</speak>",
        "<p>One ",
        "</p>",
        "<break time='9ms'",
        "/>",
        "<!--",
        "<sub alias='two'>2",
        "</sub>",
        "<say-as interpret-as='digits'>48</say-as> ",
        "&lt;",
    ]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "keep_open": st.sampled_from([True, True, True, False, None, 1]),
        "ssml": st.sampled_from([True, True, True, False, "yes"]),
        "timestamps": st.sampled_from(["word", "word", "word", None, "letter"]),
    },
)
OPENINGS = st.builds(lambda options: json.dumps({**START, **options}).encode(), OPTIONS)
KINDS = ("flush", "done", "cancel", "clear", "clear", "close")
GOOD = (
    st.builds(lambda text: {"type": "text", "text": text}, TEXT)
    | st.builds(lambda text: {"type": "text", "text": text}, TEXT)
    | st.sampled_from([*({"type": kind} for kind in KINDS), START])
    | st.sampled_from([{**START, "voice": "nobody"}, {**START, "response_format": "vorbis"}])
)
SENT = [json.dumps(message).encode() for message in (START, {"type": "text", "text": "Héllo."})]
FRAMES = (
    st.tuples(st.just("text"), GOOD.map(lambda message: json.dumps(message).encode()))
    | st.tuples(st.just("text"), damaged(SENT, [b'"', b"{", b"\\ud800", b"[" * 90, b"\xff"]))
    | st.tuples(st.just("pieces"), damaged(SENT))
    | st.tuples(st.just("binary"), st.binary(max_size=40))
    | st.tuples(st.sampled_from(["ping", "pong"]), st.binary(max_size=20))
    | st.tuples(st.just("large"), st.sampled_from([b"65536", b"65537", b"300000"]))
)
CONVERSATION = re.compile(
    r"(?:error)?|ready(?: (?:timestamps|utterance\.done|cleared|error))*(?: session\.done)?"
)
"""The messages of the server; an error before others is that of a sentence that the voice cannot read."""
SERVER = [Draft202012Validator(schema) for schema in SERVER_MESSAGES.values()]


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway)


def send(socket: ClientConnection, kind: str, content: bytes) -> None:
    if kind == "text":
        socket.send(content, text=True)
    elif kind == "pieces":
        socket.send((content[at : at + 7] for at in range(0, len(content), 7)), text=True)
    elif kind == "large":
        socket.send('{"type": "text", "text": "' + "a" * int(content) + '"}')
    elif kind == "binary":
        socket.send(content)
    elif kind == "ping":
        socket.ping()
    else:
        socket.pong(content)


def send_all(socket: ClientConnection, frames: Iterable[tuple[str, bytes]]) -> None:
    """Send the frames until the server closes."""
    try:
        for kind, content in frames:
            send(socket, kind, content)
        # Ends every session that has not ended yet.
        socket.send('{"type": "cancel"}')
    except ConnectionClosed:
        return


def logged(gateway: Gateway, since: int = 0) -> str:
    """Return the gateway's log after its first ``since`` characters."""
    return gateway.command.log.read_text()[since:]


def spoken(account: SpeechAccount) -> list[bytes | dict[str, Any]]:
    with account.session(response_format="pcm") as session:
        session.text("Hi.")
        session.done()
        return session.rest()


def breaks_the_protocol(frame: tuple[str, bytes]) -> bool:
    """Whether our client may miss the close, because it stops reading when a send fails."""
    kind, content = frame
    return frame == ("large", b"300000") or (kind in {"text", "pieces"} and not is_utf8(content))


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.long
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(
    opening=st.builds(lambda start: [("text", start)], OPENINGS) | st.just([]),
    frames=st.lists(FRAMES, max_size=8),
    leaves=st.booleans(),
)
def test_any_frames_end_as_the_contract_says(
    speech: SpeechAccount,
    opening: list[tuple[str, bytes]],
    frames: list[tuple[str, bytes]],
    leaves: bool,
) -> None:
    before = len(logged(speech.gateway))
    with speech.connect() as socket:
        send_all(socket, [*opening, *frames])
        if leaves or any(map(breaks_the_protocol, frames)):
            with suppress(OSError):  # the server may have been first
                socket.socket.shutdown(SHUT_RDWR)
            found, code = [], None
        else:
            found, code = Conversation(socket).rest(), socket.close_code
    messages = [message for message in found if isinstance(message, dict)]
    for message in messages:
        assert any(schema.is_valid(message) for schema in SERVER), message
    kinds = [message["type"] for message in messages]
    assert CONVERSATION.fullmatch(" ".join(kinds)), kinds
    # Times stand before each frame, or before none.
    if "timestamps" in kinds:
        preceding = [found[at - 1] for at, each in enumerate(found) if isinstance(each, bytes)]
        assert all(isinstance(each, dict) and each["type"] == "timestamps" for each in preceding)
    if code is not None:
        assert str(code) in CLOSES
        assert code not in {1011, 1012, 4429, 4502}, "nothing is wrong with the server"
        assert (kinds[-1:] == ["session.done"]) == (code == 1000)
        assert kinds[-1:] == ["error"] or code in UNREADABLE | {1000, 1009}
    since = logged(speech.gateway, before)
    assert "Traceback" not in since, since
    assert "unexpected" not in since, since


def test_a_session_works_after_all_of_that(speech: SpeechAccount) -> None:
    for opening in ([], [("text", SENT[0])]):
        for kind in ("text", "binary"):
            with speech.connect() as socket:
                send_all(socket, [*opening, (kind, b"\xff\xfe{"), (kind, b"")])
                Conversation(socket).rest()
    *frames, last = spoken(speech)
    assert last == {"type": "session.done"}
    assert frames
    assert all(isinstance(frame, bytes) and frame for frame in frames)


def test_a_protocol_violation_is_recorded_as_the_clients_end(speech: SpeechAccount) -> None:
    before = len(logged(speech.gateway))
    for _ in range(5):
        with speech.connect() as socket:
            # In one piece, so that the end is read before anything was answered.
            socket.protocol.send_text(SENT[0])
            socket.protocol.send_text(b"\xff")
            socket.socket.sendall(b"".join(socket.protocol.data_to_send()))
            assert Conversation(socket).close_code == 1007
    rows = until(lambda: found if len(found := speech.rows()) == 5 else None)
    assert {row.outcome for row in rows} == {"client_disconnected"}
    assert "unexpected" not in logged(speech.gateway, before)


def test_a_client_that_is_still_sending_gets_the_close_frame(speech: SpeechAccount) -> None:
    """It uses a bare socket: closing early would reset the connection and lose the close frame."""
    for _ in range(5):
        with RawClient(speech.gateway, speech.gateway.speech_port) as client:
            client.upgrade(speech.key)
            # A text frame of 300 000 bytes, masked with zeros, of which more is sent than is read.
            client.send(b"\x81\xff" + struct.pack(">QI", 300_000, 0) + b" " * 300_000)
            client.send(b" " * 2_000_000)
            frames = client.rest()
        assert frames[:1] == b"\x88"
        assert struct.unpack(">H", frames[2:4]) == (1009,)


ORDER = st.lists(
    st.sampled_from(
        ["start", "open", "unknown", "text", "blank", "flush", "done", "cancel", "clear", "close"]
    ),
    max_size=7,
)


def expected(order: list[str]) -> set[int]:
    """Return the close codes that a session of these messages and a last ``cancel`` may have."""
    kinds = [*order, "cancel"]
    if kinds[0] == "unknown":
        return {4404}
    if kinds[0] not in {"start", "open"}:
        return {4400}
    has_words = keep_open = kinds[0] == "open"
    last = "close" if keep_open else "done"
    for at, kind in enumerate(kinds[1:], 1):
        if kind == "cancel":
            return {1000}
        if kind in {"start", "open", "unknown"} or (kind in {"clear", "close"} and not keep_open):
            return {4400}
        if kind == last:
            if not has_words:
                return {4400}
            # Later messages may be read before everything is spoken, or after the end.
            return {1000} if kinds[at + 1] == "cancel" else {1000, 4400}
        has_words = has_words or kind == "text"
    raise AssertionError("there is a cancel at the end")


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(order=ORDER)
def test_any_order_of_messages_ends_as_the_model_says(
    speech: SpeechAccount, order: list[str]
) -> None:
    messages = {
        "start": START,
        "open": {**START, "keep_open": True},
        "unknown": {**START, "voice": "nobody"},
        "text": {"type": "text", "text": "Hi. "},
        "blank": {"type": "text", "text": " ... "},
    }
    sent = [json.dumps(messages.get(kind, {"type": kind})).encode() for kind in order]
    with speech.connect() as socket:
        send_all(socket, [("text", message) for message in sent])
        assert Conversation(socket).close_code in expected(order)


@pytest.mark.timeout(0)
def test_any_bytes_get_one_answer_and_end(gateway_with: Callable[..., Gateway]) -> None:
    """Handshakes and frames, byte by byte: what no library of clients would send."""
    gateway = gateway_with(**BOUNDS)
    connections = Connections(speech_account(gateway).key)
    player = Player(gateway.port, gateway.speech_port, gateway.command.log, SECONDS)
    for seeds in batches(200):
        findings = player.play(
            map(connections.make, seeds),
            lambda each, received, ended: faults_of(each, received, ended=ended),
            is_over,
        )
        assert not findings, "\n".join(map(str, findings[:20]))
    assert fetch(f"{gateway.url}/livez").status_code == 200
