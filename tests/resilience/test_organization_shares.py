"""Whatever one caller holds, with a key or without, other organizations are still served."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace

import pytest

from accounts.models import Organization, Plan, Scope
from tests.resilience.wire import frame, head, upgrade
from tests.support.clients.raw_client import RawClient
from tests.support.faults.case import publish_on
from tests.support.gateways import Served, another_gateway
from tests.support.live import Gateway, events, fetch
from tests.support.live_catalog import backend
from tests.support.metrics import metrics
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import CLIP, SpeechAccount
from tests.support.until import until

BOUND, SHARE, TRIED = 8, 2, 12
"""The places of each kind, the share of one organization, and an attacker's attempts."""
SOUND_BYTES = 48_000_000
LONG_TEXT = "The bees fly over the field. " * 24
"""At a quarter of the speed some 9 MB of sound: less than an organization's share, more than sockets
buffer."""
SLOTS = 4
"""The slots of the model server that two organizations share."""

SETTINGS = {
    "SVC_MAX_INFLIGHT": str(BOUND),
    "SVC_MAX_ARRIVING": str(BOUND),
    "SVC_MAX_LINGERING": str(BOUND),
    "SVC_MAX_UNSTARTED_SESSIONS": str(BOUND),
    "SVC_MAX_SPEECH_SESSIONS": str(BOUND),
    "SVC_MAX_SOUND_BYTES": str(SOUND_BYTES),
    "SVC_ORGANIZATION_SHARE": str(SHARE / BOUND),
    # The tests decide how long places are held, on a slow machine too.
    "SVC_BODY_SECONDS": "120",
    "SVC_SPEECH_START_SECONDS": "120",
    "SVC_SPEECH_IDLE_SECONDS": "120",
}


@pytest.fixture(scope="module")
def crowded(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One gateway with few places, for all tests here."""
    with another_gateway(served, tmp_path_factory.mktemp("crowded"), **SETTINGS) as started:
        yield started


@pytest.fixture
def victim(crowded: Served, gateway: Gateway) -> Gateway:
    """The crowded gateway, with a new organization for each test, once nothing is held there."""
    until(lambda: nothing_held(crowded.serving(gateway)))
    return crowded.serving(gateway)


@pytest.fixture
def attacker(victim: Gateway) -> SpeechAccount:
    """Another organization on the same gateway."""
    return speech_account(victim)


@contextmanager
def held(port: int, opening: bytes) -> Iterator[list[socket.socket]]:
    """``TRIED`` connections that sent ``opening`` and nothing more."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(TRIED):
            raw = socket.create_connection(("127.0.0.1", port), timeout=60)
            stack.enter_context(closing(raw))
            raw.sendall(opening)
            sockets.append(raw)
        yield sockets


def first_line(raw: socket.socket) -> bytes:
    return raw.recv(4096).partition(b"\r\n")[0]


Holder = Callable[[SpeechAccount], AbstractContextManager[object]]


@contextmanager
def refusals_that_linger(attacker: SpeechAccount) -> Iterator[None]:
    """Requests without a key whose bodies never end."""
    opening = head("POST", "/v1/chat/completions", headers={"transfer-encoding": "chunked"})
    with held(attacker.gateway.port, opening) as sockets:
        for raw in sockets:
            assert first_line(raw).split()[1] == b"401"
        yield


@contextmanager
def slow_bodies(attacker: SpeechAccount) -> Iterator[None]:
    gateway = replace(attacker.gateway, organization=attacker.organization)
    opening = (
        head("POST", "/v1/chat/completions", key=gateway.mint(), headers={"content-length": "100"})
        + b"{"
    )
    with held(gateway.port, opening):
        yield


@contextmanager
def slow_clone_bodies(attacker: SpeechAccount) -> Iterator[None]:
    opening = head("POST", "/v1/voices", key=attacker.key, headers={"content-length": "100"}) + b"{"
    with held(attacker.gateway.speech_port, opening):
        yield


@contextmanager
def sockets_without_start(attacker: SpeechAccount) -> Iterator[None]:
    with held(attacker.gateway.speech_port, upgrade(attacker.key)) as sockets:
        for raw in sockets:
            first_line(raw)
        yield


@contextmanager
def idle_sessions(attacker: SpeechAccount) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(TRIED):
            raw = RawClient(attacker.gateway, attacker.gateway.speech_port)
            stack.enter_context(raw)
            if b" 101 " in raw.upgrade(attacker.key):
                raw.send(frame(b'{"type": "start", "voice": "ava"}'))
                raw.read_until(1, b"ready")
                assert b"ready" in raw.received
                opened.append(raw)
        yield opened


@contextmanager
def empty_texts(attacker: SpeechAccount) -> Iterator[None]:
    with idle_sessions(attacker) as opened:
        for raw in opened:
            raw.send(frame(b'{"type":"text","text":""}') * 2000)
        yield


@contextmanager
def streams(attacker: SpeechAccount) -> Iterator[None]:
    gateway = replace(attacker.gateway, organization=attacker.organization)
    gateway.key = gateway.mint()
    with ExitStack() as stack:
        for _ in range(TRIED):
            client = stack.enter_context(RawClient(gateway))
            client.chat("[[sim tokens=30000 pace=20]]", stream=True)
            client.read_until(1, b"\r\n\r\n")
        yield


@contextmanager
def unread_files(attacker: SpeechAccount) -> Iterator[list[int]]:
    """Request complete files, one after the other, and read none of them; yield the statuses."""
    body = {"voice": "ava", "input": LONG_TEXT, "speed": 0.25, "response_format": "wav"}
    content = json.dumps(body).encode()
    opening = head(
        "POST", "/v1/audio/speech", key=attacker.key, headers={"content-length": str(len(content))}
    )
    with ExitStack() as stack:
        statuses = []
        port = attacker.gateway.speech_port
        for _ in range(SHARE):
            raw = stack.enter_context(RawClient(attacker.gateway, port, receive_buffer=4096))
            raw.send(opening + content)
            statuses.append(int(raw.read(12).split()[1]))
        yield statuses


HOLDERS: list[Holder] = [
    refusals_that_linger,
    slow_bodies,
    slow_clone_bodies,
    sockets_without_start,
    idle_sessions,
    empty_texts,
    streams,
    unread_files,
]


def assert_served(victim: Gateway) -> None:
    """Chat, stream, speak, hold a session and create a voice, each at the first try."""
    chat = victim.chat("say: hello")
    assert chat.status_code == 200, chat.text
    stream = victim.chat("say: hello", stream=True)
    assert stream.status_code == 200, stream.text
    assert events(stream.text)[-1] == "[DONE]"
    organization = Organization.objects.get(pk=victim.organization.pk)
    organization.plan = Plan.ENTERPRISE
    organization.speech_requests_per_minute = organization.speech_characters_per_day = None
    organization.save()
    speech = SpeechAccount(victim, organization, victim.api_key, victim.mint(Scope.SPEECH))
    spoken = speech.speak("Hello.")
    assert spoken.status_code == 200, spoken.text
    with speech.session() as session:
        session.text("Hello there. ")
        session.done()
        assert session.rest()[-1] == {"type": "session.done"}
    clone = {"name": "Anna", "audio_b64": CLIP, "consent": True}
    created = fetch(f"{speech.url}/v1/voices", "POST", key=speech.key, json=clone)
    assert created.status_code == 201, created.text
    assert fetch(f"{victim.url}/readyz").status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("hold", HOLDERS, ids=lambda hold: hold.__name__)
def test_others_are_served_while_one_caller_holds_all_it_can(
    hold: Holder, victim: Gateway, attacker: SpeechAccount
) -> None:
    with hold(attacker):
        assert_served(victim)


def test_others_are_served_while_one_caller_holds_everything_at_once(
    victim: Gateway, attacker: SpeechAccount
) -> None:
    with ExitStack() as stack:
        for hold in HOLDERS:
            stack.enter_context(hold(attacker))
        assert_served(victim)


@pytest.mark.long
def test_slow_readers_of_one_organization_leave_slots_of_a_model_server(
    gateway: Gateway, start_gateway: Callable[..., Gateway]
) -> None:
    gateway.organization.tokens_per_minute = None
    gateway.organization.save()
    model = publish_on(gateway, backend(gateway, max_concurrency=SLOTS))
    victim = start_gateway(SVC_BACKEND_QUEUE_SECONDS="1")
    neighbour = replace(victim, organization=speech_account(gateway).organization)
    neighbour.key = neighbour.mint()
    assert victim.chat("say: hello", model=model).status_code == 200

    with ExitStack() as stack:
        answers = []
        for _ in range(SLOTS):
            client = stack.enter_context(RawClient(neighbour))
            client.chat("[[sim tokens=30000 pace=20]]", stream=True, model=model)
            client.read_until(1, b"\r\n\r\n")
            answers.append(client.received.split()[1])
        served = [victim.chat("say: hello", model=model).status_code for _ in range(3)]

    assert answers == [b"200"] * (SLOTS - 1) + [b"503"]
    assert served == [200] * 3


def nothing_held(gateway: Gateway) -> bool:
    return metrics(gateway).sum("svc_capacity_used") == 0


def test_streams_above_the_share_are_refused_and_shown(
    victim: Gateway, attacker: SpeechAccount
) -> None:
    before = metrics(victim)
    with streams(attacker):
        own = replace(victim, organization=attacker.organization)
        own.key = own.mint()

        refused = own.chat("say: one too many")
        spoken = attacker.speak("One too many.")
        seen = metrics(victim)

    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "server_overloaded"
    assert "organization" in refused.json()["error"]["message"]
    assert "retry-after" not in refused.headers
    assert spoken.status_code == 503
    assert spoken.json()["error"]["type"] == "proxy_error"
    assert spoken.headers["retry-after"] == "1"
    assert seen.sum("svc_requests_in_flight") == SHARE
    assert seen.sum("svc_capacity_used", kind="requests") == SHARE
    assert seen.sum("svc_capacity", kind="requests") == BOUND
    # One that arrives while the answers before it are still being sent may be refused as arriving.
    refusals = "svc_capacity_refusals_total"
    counted = seen.sum(refusals, reason="share") - before.sum(refusals, reason="share")
    assert counted == TRIED - SHARE + 2
    until(lambda: nothing_held(victim))


def test_sound_above_the_share_is_refused_until_other_sound_is_sent(
    victim: Gateway, attacker: SpeechAccount
) -> None:
    with unread_files(attacker) as statuses:
        seen = metrics(victim)
        spoken = attacker.speak("A short one still fits.")
        others = speech_account(victim).speak(LONG_TEXT, speed=0.25)

    assert statuses == [200, 503]
    assert 0 < seen.sum("svc_capacity_used", kind="sound_bytes") <= SOUND_BYTES * SHARE / BOUND
    assert spoken.status_code == 200
    assert others.status_code == 200
    until(lambda: nothing_held(victim))
    assert attacker.speak(LONG_TEXT, speed=0.25).status_code == 200


def test_an_upgrade_above_the_share_is_refused_with_a_time_to_try_again(
    victim: Gateway, attacker: SpeechAccount
) -> None:
    with idle_sessions(attacker) as opened:
        assert len(opened) == SHARE
        with RawClient(victim, victim.speech_port) as client:
            head = client.upgrade(attacker.key)
            body = client.rest()
        assert metrics(victim).sum("svc_capacity_used", kind="sessions") == SHARE

    assert head.startswith(b"http/1.1 503 ")
    assert b"retry-after: 1" in head
    assert json.loads(body)["error"]["type"] == "proxy_error"
    until(lambda: nothing_held(victim))


def test_a_body_that_does_not_arrive_holds_no_creation_of_a_voice(
    victim: Gateway, attacker: SpeechAccount
) -> None:
    with slow_clone_bodies(attacker):
        until(lambda: metrics(victim).sum("svc_capacity_used", kind="arriving") == SHARE)
        seen = metrics(victim)

    assert seen.sum("svc_capacity_used", kind="clones") == 0
    assert seen.sum("svc_requests_in_flight") == 0


def test_refusals_above_their_bound_do_not_linger(victim: Gateway, attacker: SpeechAccount) -> None:
    """The refusals are still answered."""
    with refusals_that_linger(attacker):
        seen = metrics(victim)

    assert seen.sum("svc_capacity_used", kind="lingering") <= SHARE
    assert seen.sum("svc_capacity_refusals_total", kind="lingering", reason="share") > 0
    assert seen.sum("svc_requests_in_flight") == 0
