"""What the pages of voices and of the playground send, to a live gateway: sessions, limits, rows."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accounts.models import Organization, Scope
from core.ids import NIL_UUID
from speech.models import VoiceClone
from speech.voices.clones import clips
from tests.support.builders import speech_rows
from tests.support.pages.signed_in import SignedIn
from tests.support.speech.accounts import account_of
from tests.support.speech.caller import CLIP, Conversation, seconds
from tests.support.until import until

SPEECH, CLONES, STREAM = (f"/console/voices/{name}" for name in ("speech", "clones", "stream"))
CHAT = "/console/playground/chat"
SENTENCE = "The morning train was late again."
BODIES: dict[str, dict[str, Any]] = {
    SPEECH: {"voice": "ava", "input": SENTENCE},
    CLONES: {"name": "Anna", "audio_b64": CLIP, "consent": True},
    CHAT: {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: hello"}]},
}


def limit(signed_in: SignedIn, **columns: int) -> None:
    """Set limits of the person's organization, and wait until the gateway sees them."""
    Organization.objects.filter(pk=signed_in.gateway.organization.pk).update(**columns)
    signed_in.gateway.sees_changes()


def own_clones(signed_in: SignedIn) -> list[VoiceClone]:
    return list(VoiceClone.objects.filter(organization=signed_in.gateway.organization))


def first_error(session: Conversation) -> dict[str, Any]:
    """The error of a session that says nothing else."""
    message = session.receive()
    assert message["type"] == "error", message
    found: dict[str, Any] = message["error"]
    return found


# -- HTTP ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sound_format", ["wav", "pcm"])
def test_speech_is_metered_for_the_organization_without_a_key(
    signed_in: SignedIn, sound_format: str
) -> None:
    body = {**BODIES[SPEECH], "response_format": sound_format}

    answer = signed_in.post(SPEECH, body)

    assert answer.status_code == 200
    (row,) = until(signed_in.speech_rows)
    assert row.request_id == answer.headers["x-request-id"]
    assert (row.api_key_id, row.voice, row.outcome) == (NIL_UUID, "ava", "success")
    assert (row.characters, row.transport) == (len(SENTENCE), "http")
    if sound_format == "wav":
        assert seconds(answer.content) == pytest.approx(row.audio_ms / 1000, abs=0.01)


def without(signed_in: SignedIn, name: str) -> dict[str, str]:
    """The headers of the page without a cookie or a header, or with another origin."""
    cookies = {each: value for each, value in signed_in.cookies.items() if each != name}
    headers = {**signed_in.headers, "cookie": "; ".join(map("=".join, cookies.items()))}
    if name == "origin":
        headers["origin"] = "https://evil.example"
    return {each: value for each, value in headers.items() if each != name or name == "origin"}


@pytest.mark.parametrize("path", [SPEECH, CLONES, CHAT])
@pytest.mark.parametrize(
    ("left_out", "status", "told"),
    [
        ("sessionid", 401, "log in again"),
        ("csrftoken", 403, ""),
        ("x-csrftoken", 403, ""),
        ("origin", 403, ""),
        ("all but a key", 401, "log in again"),
        ("the own organization", 401, "log in again"),
        ("", 200, ""),
    ],
)
def test_only_a_session_with_the_token_the_origin_and_the_organization_is_answered(
    signed_in: SignedIn, path: str, left_out: str, status: int, told: str
) -> None:
    own = signed_in.gateway.organization.pk
    named = uuid.uuid4() if left_out == "the own organization" else own
    headers = without(signed_in, left_out)
    if left_out == "all but a key":
        headers = {"authorization": f"Bearer {signed_in.gateway.mint(Scope.SPEECH)}"}

    answer = signed_in.post(f"{path}?organization={named}", BODIES[path], headers)

    made = status == 200
    assert answer.status_code == (201 if made and path == CLONES else status)
    assert made or told in answer.json()["error"]["message"]
    if made and path == SPEECH:
        until(signed_in.speech_rows)
    assert len(signed_in.speech_rows()) == (1 if made and path == SPEECH else 0)
    assert len(own_clones(signed_in)) == (1 if made and path == CLONES else 0)
    assert len(signed_in.gateway.rows()) == (1 if made and path == CHAT else 0)


@pytest.mark.parametrize(("path", "most"), [(SPEECH, 128 * 1024), (CLONES, 16_000_000)])
def test_a_body_is_bounded_before_it_is_parsed(signed_in: SignedIn, path: str, most: int) -> None:
    answer = signed_in.post(path, b"[" + b" " * most)

    assert answer.status_code == 413
    assert f"larger than {most} bytes" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "fields", "status", "param", "message"),
    [
        (SPEECH, {"input": " "}, 400, "input", "The text is blank"),
        (SPEECH, {"voice": "nobody"}, 400, "", "There is no such voice any more. Reload"),
        (CLONES, {"consent": False}, 400, "consent", "Tick the box"),
        (CLONES, {"name": "x" * 41}, 400, "name", "The name cannot be used: it has 41"),
        (CLONES, {"name": "ava"}, 409, "", "A voice with this name already exists"),
        (CLONES, {"audio_b64": "!"}, 400, "audio_b64", "The recording cannot be used"),
    ],
)
def test_problems_are_in_the_words_of_the_page(
    signed_in: SignedIn, path: str, fields: dict[str, Any], status: int, param: str, message: str
) -> None:
    answer = signed_in.post(path, {**BODIES[path], **fields})

    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["param"] == param
    assert message in error["message"]
    assert signed_in.speech_rows() == []
    assert own_clones(signed_in) == []


@pytest.mark.parametrize(
    ("column", "allowed", "told"),
    [
        ("speech_requests_per_minute", 2, "limit is 2 speech requests a minute"),
        ("speech_characters_per_day", 2 * len(SENTENCE) + 1, "characters a day"),
    ],
)
def test_the_limits_are_those_of_the_api(
    signed_in: SignedIn, column: str, allowed: int, told: str
) -> None:
    limit(signed_in, **{column: allowed})
    api = account_of(signed_in.gateway, signed_in.gateway.organization)
    assert api.request("POST", "/v1/audio/speech", json=BODIES[SPEECH]).status_code == 200
    assert signed_in.post(SPEECH, BODIES[SPEECH]).status_code == 200

    answer = signed_in.post(SPEECH, BODIES[SPEECH])

    assert answer.status_code == 429
    assert told in answer.json()["error"]["message"]
    assert len(until(lambda: rows if len(rows := signed_in.speech_rows()) > 1 else None)) == 2


# -- clones ----------------------------------------------------------------------------------


def test_a_clone_belongs_to_the_organization_and_works_with_its_keys(signed_in: SignedIn) -> None:
    answer = signed_in.post(CLONES, BODIES[CLONES])

    assert answer.status_code == 201
    (clone,) = own_clones(signed_in)
    assert (answer.json()["id"], clone.api_key_id) == (clone.pk, NIL_UUID)
    assert clips.cipher().open(bytes(clone.audio.sealed))[:4] == b"RIFF"
    assert account_of(signed_in.gateway, signed_in.gateway.organization).own() == [clone.pk]
    assert signed_in.post(SPEECH, {**BODIES[SPEECH], "voice": clone.pk}).status_code == 200
    assert [row.cloned for row in until(signed_in.speech_rows)] == [True]


def test_more_than_ten_clones_are_refused(signed_in: SignedIn) -> None:
    for _ in range(10):
        speech_rows.clone(signed_in.gateway.organization)

    answer = signed_in.post(CLONES, BODIES[CLONES])

    assert answer.status_code == 400
    assert "You have 10 clones" in answer.json()["error"]["message"]


def test_another_organizations_clone_does_not_exist(signed_in: SignedIn) -> None:
    foreign = speech_rows.clone(speech_rows.organization())

    spoken = signed_in.post(SPEECH, {**BODIES[SPEECH], "voice": foreign.pk})
    unknown = signed_in.post(SPEECH, {**BODIES[SPEECH], "voice": "voice_" + "0" * 32})

    assert spoken.status_code == unknown.status_code == 400
    assert spoken.content == unknown.content
    with signed_in.connect(STREAM) as socket:
        session = Conversation(socket)
        session.send(type="start", voice=foreign.pk)
        assert "no such voice" in first_error(session)["message"]
        assert session.close_code == 4404
    answer = signed_in.get(
        f"/console/{signed_in.gateway.organization.slug}/voices/{foreign.pk}/delete"
    )
    assert answer.status_code == 404
    assert foreign.name not in answer.text
    assert signed_in.speech_rows() == []


# -- the WebSocket ---------------------------------------------------------------------------


def test_a_session_speaks_sentence_by_sentence_and_has_a_row(signed_in: SignedIn) -> None:
    own = signed_in.gateway.organization.pk
    with signed_in.connect(f"{STREAM}?organization={own}") as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava", response_format="wav")
        ready = session.receive()
        session.text(f"{SENTENCE} We walked along the river.")
        session.done()
        messages = session.rest()

    assert [type(each) for each in messages] == [bytes, bytes, dict]
    (row,) = until(signed_in.speech_rows)
    assert row.request_id == ready["request_id"]
    assert (row.api_key_id, row.transport, row.sentences) == (NIL_UUID, "websocket", 2)
    assert row.outcome == "success"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": ""}, 403),
        ({"cookie": ""}, 401),
        ({"cookie": "sessionid=wrong"}, 401),
        ({"cookie": "", "authorization": "KEY"}, 401),
        ({"organization": "another"}, 401),
    ],
    ids=str,
)
def test_only_a_session_from_the_consoles_own_pages_is_opened(
    signed_in: SignedIn, headers: dict[str, str], status: int
) -> None:
    sent = dict(headers)
    if "authorization" in sent:
        sent["authorization"] = f"Bearer {signed_in.gateway.mint(Scope.SPEECH)}"
    picked = uuid.uuid4() if sent.pop("organization", "") else signed_in.gateway.organization.pk
    with (
        pytest.raises(InvalidStatus) as refused,
        signed_in.connect(f"{STREAM}?organization={picked}", **sent),
    ):
        pass

    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["message"]
    assert signed_in.speech_rows() == []


def test_an_open_session_ends_when_the_person_logs_out(signed_in: SignedIn) -> None:
    with signed_in.connect(STREAM) as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava")
        assert session.receive()["type"] == "ready"

        Session.objects.get(pk=signed_in.cookies["sessionid"]).delete()

        assert "session has ended" in first_error(session)["message"]
        assert session.close_code == 4401
    (row,) = until(signed_in.speech_rows)
    assert (row.outcome, row.close_code) == ("client_error", 4401)


def test_a_limit_and_a_message_that_is_too_large_end_a_session_in_the_words_of_the_page(
    signed_in: SignedIn,
) -> None:
    limit(signed_in, speech_characters_per_day=3)
    for text, told, code in (
        (SENTENCE, "limit is 3 characters a day", 4429),
        ("x" * 70_000, "at most", 1009),
    ):
        with signed_in.connect(STREAM) as socket:
            session = Conversation(socket)
            session.send(type="start", voice="ava")
            session.receive()
            with suppress(ConnectionClosed):
                session.text(text)
                session.done()
            with suppress(ConnectionClosed):
                assert told in first_error(session)["message"]
            assert session.close_code == code
