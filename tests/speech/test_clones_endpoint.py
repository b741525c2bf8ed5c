"""``POST /v1/voices``, ``DELETE /v1/voices/{id}`` and the voice list, against a running gateway."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import numpy as np
import pytest

from accounts.keys import mint, revoke
from accounts.models import Plan, Scope
from speech.clones.store import cipher
from speech.models import CloneAudio, VoiceClone
from speech.wav import canonical_wav, clip_from_base64
from tests.live import Gateway, eventually
from tests.speech import clips, making
from tests.speech.live import CLIP, SpeechClient, client_of, error_of, new_client

ENGLISH, HINDI = ["ava", "emma", "leo", "oliver"], ["arjun", "asha", "meera", "rohan"]


@pytest.fixture
def client(gateway: Gateway) -> SpeechClient:
    return new_client(gateway)


def at_once(calls: list[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return [each.result() for each in [threads.submit(call) for call in calls]]


# --- creation


def test_a_clone_is_created_listed_and_deleted(client: SpeechClient) -> None:
    before = int(time.time())

    answer = client.create("  Anna Maria ")

    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    clone = answer.json()
    assert list(clone) == ["id", "object", "name", "created", "owned_by", "reference_seconds"]
    assert clone["id"].startswith("voice_")
    assert len(clone["id"]) == 38
    assert (clone["object"], clone["name"], clone["owned_by"]) == ("voice", "Anna Maria", "user")
    assert before <= clone["created"] <= time.time()
    assert clone["reference_seconds"] == 4.0
    assert client.listed()[-1] == {
        "id": clone["id"],
        "object": "model",
        "created": clone["created"],
        "owned_by": "user",
    }

    deletion = client.delete(clone["id"])

    assert deletion.status_code == 200
    assert deletion.json() == {"id": clone["id"], "object": "voice", "deleted": True}
    assert deletion.headers["x-request-id"].startswith("req_")
    assert client.own() == []
    assert error_of(client.delete(clone["id"])) == (404, "not_found_error")


def test_the_profile_has_the_speakers_pitch(client: SpeechClient) -> None:
    audio = clips.base64_of(clips.wav(clips.voice(5.0, f0=200.0)))

    created = client.create(audio_b64=audio)

    clone = VoiceClone.objects.get(pk=created.json()["id"])
    assert clone.profile["f0"] == pytest.approx(200, rel=0.02)
    assert str(clone.api_key_id) != str(clone.organization_id)
    assert clone.organization == client.organization


def test_the_clip_is_kept_sealed_and_goes_with_the_deletion(client: SpeechClient) -> None:
    clone_id = client.create().json()["id"]
    canonical = canonical_wav(clip_from_base64(CLIP))

    sealed = bytes(CloneAudio.objects.get(pk=clone_id).sealed)

    assert canonical[:4] not in sealed
    assert canonical[1000:1040] not in sealed
    assert cipher().open(sealed) == canonical

    client.delete(clone_id)

    assert not CloneAudio.objects.filter(pk=clone_id).exists()
    tombstone = VoiceClone.objects.get(pk=clone_id)
    assert (tombstone.slot, tombstone.profile) == (None, {})
    assert tombstone.deleted_at is not None


def test_a_data_url_is_taken_and_a_long_clip_too(client: SpeechClient) -> None:
    audio = clips.base64_of(clips.wav(clips.voice(12.0, rate=8_000), rate=8_000))

    answer = client.create(audio_b64=f"data:audio/wav;base64,{audio}")

    assert answer.json()["reference_seconds"] == 12.0


def _file(*parts: bytes, **layout: Any) -> str:
    return clips.base64_of(clips.riff(clips.chunk(b"fmt ", clips.layout(**layout)), *parts))


def _without(*names: str, **fields: Any) -> dict[str, Any]:
    whole = {"name": "Anna", "audio_b64": CLIP, "consent": True, **fields}
    return {name: value for name, value in whole.items() if name not in names}


_NAN = np.where(np.arange(64_000) == 9, np.nan, clips.voice(4.0))

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": (_without("name"), "'name' is required"),
    "no audio": (_without("audio_b64"), "'audio_b64' is required"),
    "no consent": (_without("consent"), "'consent' must be true"),
    "consent false": (_without(consent=False), "'consent' must be true"),
    "consent 1": (_without(consent=1), "'consent' must be true"),
    "consent as text": (_without(consent="true"), "'consent' must be true"),
    "null name": (_without(name=None), "'name' is required"),
    "number as name": (_without(name=7), "'name' must be a string, not a number"),
    "list as name": (_without(name=["a"]), "'name' must be a string, not an array"),
    "object as audio": (_without(audio_b64={}), "'audio_b64' must be a string, not an object"),
    "boolean as audio": (_without(audio_b64=True), "'audio_b64' must be a string, not a boolean"),
    "blank name": (_without(name=" \t"), "'name' cannot be used: it is blank"),
    "41 characters": (_without(name="x" * 41), "'name' cannot be used: it has 41 characters"),
    "control character": (_without(name="a\0b"), "it holds U+0000"),
    "writing direction": (_without(name="a\u202eb"), "it holds U+202E"),
    "empty audio": (_without(audio_b64=""), "'audio_b64' cannot be used: it is empty"),
    "not base64": (_without(audio_b64="####"), "it is not valid base64"),
    "line breaks": (_without(audio_b64=CLIP[:76] + "\n" + CLIP[76:]), "it is not valid base64"),
    "not ASCII": (_without(audio_b64="é" * 8), "it is not valid base64"),
    "no padding": (_without(audio_b64=CLIP.rstrip("=")[:-3]), "it is not valid base64"),
    "not a WAV": (_without(audio_b64=clips.base64_of(b"hello there, this is text")), "not a WAV"),
    "an MP3": (_without(audio_b64=clips.base64_of(b"ID3" + b"\0" * 60)), "an MP3 file"),
    "2.9 seconds": (
        _without(audio_b64=clips.base64_of(clips.wav(clips.voice(2.9)))),
        "the clip is 2.900 seconds long; it must be 3 to 12 seconds",
    ),
    "12.1 seconds": (
        _without(audio_b64=clips.base64_of(clips.wav(clips.voice(12.1)))),
        "the clip is 12.100 seconds long",
    ),
    "truncated": (
        _without(audio_b64=clips.base64_of(clips.wav(clips.voice(4.0))[:100_000])),
        "the WAV file is cut short",
    ),
    "a size that lies": (
        _without(audio_b64=_file(clips.chunk(b"data", b"\0" * 96_000, size=0x7000_0000))),
        "the WAV file is cut short",
    ),
    "65 535 channels": (
        _without(audio_b64=_file(clips.chunk(b"data", b"\0" * 96_000), channels=65_535)),
        "it has 65535 channels; use 1 or 2",
    ),
    "NaN samples": (
        _without(audio_b64=clips.base64_of(clips.wav(_NAN, bits=32, floating=True))),
        "not finite numbers",
    ),
    "silence": (
        _without(audio_b64=clips.base64_of(clips.wav(np.zeros(64_000)))),
        "the clip is silent",
    ),
    "clipped through": (
        _without(audio_b64=clips.base64_of(clips.wav(np.sign(clips.voice(4.0))))),
        "the clip is clipped through",
    ),
}


@pytest.mark.parametrize(("body", "told"), REFUSED.values(), ids=REFUSED)
def test_a_body_that_is_wrong_is_told_why(
    client: SpeechClient, body: dict[str, Any], told: str
) -> None:
    answer = client.post(body)

    assert error_of(answer) == (400, "invalid_request_error")
    assert told in answer.json()["error"]["message"]
    assert client.own() == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"text"',
        b"null",
        b"{",
        b"\xff\xfe{}",
        b'{"name": "\xc3("}',
        b'{"name": "\\ud800"}',
        b'{"name": NaN}',
        b'{"consent": 1e999}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"name=Anna&consent=true",
    ],
    ids=lambda body: repr(body[:16]),
)
def test_what_is_no_json_object_is_refused(client: SpeechClient, body: bytes) -> None:
    assert error_of(client.post(body)) == (400, "invalid_request_error")


# --- size, while it is read


def opened(client: SpeechClient, *headers: str) -> socket.socket:
    """A connection on which the head of a creation was sent."""
    host, port = client.url.removeprefix("http://").split(":")
    lines = ["POST /v1/voices HTTP/1.1", "host: 127.0.0.1", *headers]
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return connection


def answered(connection: socket.socket) -> bytes:
    """Everything up to the end of an error's body."""
    answer = b""
    while not answer.endswith(b"}}") and (read := connection.recv(65536)):
        answer += read
    return answer


def test_a_body_that_announces_too_much_is_refused_unread(client: SpeechClient) -> None:
    key = f"authorization: Bearer {client.key}"
    with opened(client, key, "content-length: 16000001") as connection:
        answer = answered(connection)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"type":"invalid_request_error"' in answer


def test_a_body_is_cut_off_while_it_is_read(client: SpeechClient) -> None:
    """Chunked and endless: the answer comes although the body never ends."""
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    most = 60_000_000
    sent = 0

    def send() -> None:
        nonlocal sent
        with contextlib.suppress(OSError):
            while sent < most:
                connection.sendall(piece)
                sent += len(piece)

    key = f"authorization: Bearer {client.key}"
    with opened(client, key, "transfer-encoding: chunked") as connection:
        sender = threading.Thread(target=send)
        sender.start()
        answer = answered(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        sender.join()

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert sent < most


def test_exactly_sixteen_million_bytes_are_taken(client: SpeechClient) -> None:
    frame = json.dumps(_without(padding="")).encode()
    body = frame.replace(
        b'"padding": ""', b'"padding": "' + b"x" * (16_000_000 - len(frame)) + b'"'
    )
    assert len(body) == 16_000_000

    assert client.post(body).status_code == 201
    assert error_of(client.post(body + b" ")) == (413, "invalid_request_error")


# --- who is calling


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/models"), ("POST", "/v1/voices"), ("DELETE", "/v1/voices/voice_x")],
)
def test_every_problem_of_the_key_is_one_401(
    gateway: Gateway, client: SpeechClient, method: str, path: str
) -> None:
    inference = mint(client.organization, Scope.INFERENCE, "test").secret
    gone = mint(client.organization, Scope.SPEECH, "gone")
    revoke(gone.api_key)
    headers: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer"},
        {"authorization": client.key},
        {"authorization": "Bearer sk_invented"},
        {"authorization": f"Bearer {client.key}x"},
        {"authorization": f"Bearer {inference}"},
        {"authorization": f"Bearer {gone.secret}"},
    ]

    answers = [client.request(method, path, headers=each) for each in headers]

    assert [error_of(answer) for answer in answers] == [(401, "auth_error")] * len(headers)
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert len({answer.text for answer in answers}) == 1


def test_the_key_is_asked_for_before_the_body(client: SpeechClient) -> None:
    with opened(client, "content-length: 15000000") as connection:
        assert answered(connection).startswith(b"HTTP/1.1 401 ")


def test_a_view_answers_without_its_body(client: SpeechClient) -> None:
    """Nothing of it is stored: the answer comes before the body is there."""
    host, port = client.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(
            b"DELETE /v1/voices/voice_x HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            b"authorization: Bearer " + client.key.encode() + b"\r\n"
            b"content-length: 999999999999\r\n\r\n"
        )
        answer = answered(connection)

    assert answer.startswith(b"HTTP/1.1 404 ")


# --- isolation and plans


def test_accounts_do_not_see_each_others_clones(gateway: Gateway, client: SpeechClient) -> None:
    clone_id = client.create("Anna").json()["id"]
    other, colleague = new_client(gateway), client_of(gateway, client.organization)

    assert other.own() == []
    assert error_of(other.delete(clone_id)) == (404, "not_found_error")
    assert other.create("anna").status_code == 201
    assert client.own() == [clone_id]
    assert colleague.own() == [clone_id]
    assert colleague.delete(clone_id).status_code == 200


@pytest.mark.parametrize(
    "voice_id",
    [
        "nobody",
        "ava",
        "voice_",
        "voice_" + "0" * 32,
        "voice_" + "0" * 32 + "%00",
        "a/b",
        "%ff",
        "x" * 5000,
    ],
)
def test_what_is_no_clone_of_the_caller_is_not_found(client: SpeechClient, voice_id: str) -> None:
    assert error_of(client.delete(voice_id)) == (404, "not_found_error")


@pytest.mark.parametrize(
    ("plan", "visible"), [("standard", ENGLISH), ("enterprise", ENGLISH + HINDI)]
)
def test_hindi_voices_are_listed_for_enterprise_accounts(
    gateway: Gateway, plan: str, visible: list[str]
) -> None:
    client = new_client(gateway, Plan(plan))

    answer = client.get("/v1/models")

    assert answer.status_code == 200
    assert answer.json()["object"] == "list"
    entries = [entry for entry in client.listed() if entry["id"] in ENGLISH + HINDI]
    assert [entry["id"] for entry in entries] == sorted(visible)
    for entry in entries:
        assert list(entry) == ["id", "object", "created", "owned_by"]
        assert (entry["object"], entry["owned_by"]) == ("model", "svc")
        assert 0 < entry["created"] <= time.time()


def test_a_clone_cannot_be_named_like_a_voice_that_the_account_sees(gateway: Gateway) -> None:
    standard, enterprise = new_client(gateway), new_client(gateway, Plan.ENTERPRISE)

    assert error_of(standard.create("\uff21\uff36\uff21")) == (409, "invalid_request_error")
    assert error_of(enterprise.create("Asha")) == (409, "invalid_request_error")
    assert standard.create("Asha").status_code == 201


# --- names and places


def test_a_name_is_taken_once_in_any_spelling(client: SpeechClient) -> None:
    assert client.create("Straße").status_code == 201

    answer = client.create(" STRASSE")

    assert error_of(answer) == (409, "invalid_request_error")
    assert answer.headers["x-should-retry"] == "false"


def test_a_deletion_frees_name_and_place(client: SpeechClient) -> None:
    kept = [making.clone(client.organization).pk for _ in range(9)]
    tenth = client.create("Anna").json()["id"]
    answer = client.create("Bea")
    assert error_of(answer) == (400, "invalid_request_error")
    assert "10 cloned voices" in answer.json()["error"]["message"]
    # A name that is taken says so, also where no place is free.
    assert error_of(client.create("Anna")) == (409, "invalid_request_error")

    client.delete(tenth)

    again = client.create("Anna")
    assert again.status_code == 201
    assert set(client.own()) == {*kept, again.json()["id"]}
    assert again.json()["id"] != tenth


def test_thirty_at_once_get_the_two_places_that_are_left(client: SpeechClient) -> None:
    for _ in range(8):
        making.clone(client.organization)

    answers = at_once(
        [lambda number=number: client.create(f"Voice {number}") for number in range(30)]  # type: ignore[misc]
    )

    statuses = [answer.status_code for answer in answers]
    assert sorted(statuses) == [201] * 2 + [400] * 28
    assert len(client.own()) == 10
    existing = VoiceClone.objects.filter(organization=client.organization)
    assert {clone.slot for clone in existing} == set(range(1, 11))


def test_twenty_at_once_of_one_name_make_one(client: SpeechClient) -> None:
    spellings = ["Anna", "ANNA", "anna ", "\uff21nna"]

    answers = at_once(
        [lambda number=number: client.create(spellings[number % 4]) for number in range(20)]  # type: ignore[misc]
    )

    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19
    assert len(client.own()) == 1
    assert CloneAudio.objects.filter(clone__organization=client.organization).count() == 1


def test_ten_deletions_at_once_are_one(client: SpeechClient) -> None:
    clone_id = client.create().json()["id"]

    answers = at_once([lambda: client.delete(clone_id)] * 10)

    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 9


# --- the surface's shape of errors


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/voices", "POST"),
        ("PUT", "/v1/voices/voice_x", "DELETE"),
        ("GET", "/v1/voices/voice_x", "DELETE"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_405_with_allow(
    client: SpeechClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)

    assert error_of(answer) == (405, "invalid_request_error")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v1/usage", "/v1/chat/completions", "/admin/", "/console/"]
)
def test_an_unknown_path_is_404_in_this_surfaces_shape(client: SpeechClient, path: str) -> None:
    assert error_of(client.get(path)) == (404, "not_found_error")


@pytest.mark.parametrize("path", ["/v1/models", "/v1/voices", "/health", "/nothing"])
def test_a_foreign_host_is_400_in_this_surfaces_shape(client: SpeechClient, path: str) -> None:
    answer = client.get(path, headers={**client.headers, "host": "evil.example"})

    assert error_of(answer) == (400, "invalid_request_error")


def test_what_is_no_http_is_400_in_this_surfaces_shape(client: SpeechClient) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/9.9\r\n\r\n\r\n")
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]) == {"message", "type"}


# --- health


def test_health_needs_no_key_and_tells_the_uptime(client: SpeechClient) -> None:
    first = client.get("/health", headers={})

    assert first.status_code == 200
    assert set(first.json()) == {"ok", "uptime_s"}
    assert first.json()["ok"] is True
    assert first.json()["uptime_s"] > 0
    assert first.headers["x-request-id"].startswith("req_")
    assert eventually(lambda: client.get("/health").json()["uptime_s"] > first.json()["uptime_s"])


def test_health_answers_while_the_database_is_away(
    start_gateway: Callable[..., Gateway], tmp_path: Any
) -> None:
    gateway = start_gateway(DATABASE_URL="postgres://nobody@127.0.0.1:1/nothing")

    answer = httpx2.get(f"http://127.0.0.1:{gateway.speech_port}/health")

    assert answer.json()["ok"] is True
