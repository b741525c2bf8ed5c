"""The lists of voices in the shapes for clients, and the spellings of paths."""

from __future__ import annotations

import json

import httpx2

from accounts.models import Plan
from tests.support.live import NO_TLS, Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SENTENCE, SpeechAccount, seconds
from tests.support.speech.errors import kind_of


def test_a_voice_is_retrieved_by_its_id(client: SpeechAccount) -> None:
    clone = client.create("Anna").json()["id"]

    for entry in client.listed():
        assert client.get(f"/v1/models/{entry['id']}").json() == entry
    assert client.get(f"/v1/models/{clone}").json()["owned_by"] == "user"


def test_a_voice_that_is_not_listed_cannot_be_retrieved(
    gateway: Gateway, client: SpeechAccount
) -> None:
    foreign = speech_account(gateway).create("Anna").json()["id"]
    own = client.create("Anna").json()["id"]
    client.delete(own)

    told = {
        (*kind_of(client.get(f"/v1/models/{voice}")), client.get(f"/v1/models/{voice}").text)
        for voice in (foreign, own, "asha", "nobody", "a/b", "voice_" + "0" * 32)
    }

    [(status, kind, _)] = told
    assert (status, kind) == (404, "not_found_error")
    assert speech_account(gateway, Plan.ENTERPRISE).get("/v1/models/asha").status_code == 200


def test_speech_clients_list_the_same_voices_by_name(
    gateway: Gateway, client: SpeechAccount
) -> None:
    clone = client.create("Anna Ö").json()["id"]

    found = client.get("/v1/audio/voices").json()

    assert set(found) == {"voices"}
    assert [voice["id"] for voice in found["voices"]] == [each["id"] for each in client.listed()]
    named = {voice["id"]: voice for voice in found["voices"]}
    assert named["ava"] == {"id": "ava", "name": "ava", "language": "en"}
    assert named[clone] == {"id": clone, "name": "Anna Ö", "language": "en"}
    assert "asha" not in named
    enterprise = speech_account(gateway, Plan.ENTERPRISE).get("/v1/audio/voices").json()["voices"]
    assert {"id": "asha", "name": "asha", "language": "hi"} in enterprise


def test_speech_clients_find_one_model(client: SpeechAccount) -> None:
    assert client.get("/v1/audio/models").json() == {"models": [{"id": "svc", "name": "svc"}]}


def test_a_slash_at_the_end_of_a_path_is_ignored(speech: SpeechAccount) -> None:
    body = json.dumps({"voice": "ava", "input": SENTENCE}).encode()
    url = f"{speech.url}/v1/audio/speech/"
    spoken = httpx2.post(url, content=body, headers=speech.headers, verify=NO_TLS, timeout=60)

    assert spoken.status_code == 200
    assert seconds(spoken.content) > 1
    assert speech.row(spoken.headers["x-request-id"]).characters == len(SENTENCE)
    assert speech.get("/v1/models/").json() == speech.get("/v1/models").json()
    assert speech.get("/v1/models/ava/").json()["id"] == "ava"
    assert speech.get("/v1/audio/voices/").status_code == 200
    made = speech.request("POST", "/v1/voices/", content=b"{}")
    assert kind_of(made) == (400, "invalid_request_error")
    address = speech.url.replace("http", "ws", 1) + "/v1/audio/speech/stream/"
    with speech.connect(address=address) as socket:
        socket.send('{"type": "start", "voice": "ava"}')
        assert json.loads(socket.recv(60))["type"] == "ready"


def test_a_slash_at_the_end_of_a_chat_path_is_ignored(gateway: Gateway) -> None:
    headers = {"authorization": f"Bearer {gateway.key}"}
    question = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "Hi"}]}

    url = f"{gateway.url}/v1/chat/completions/"
    answer = httpx2.post(url, json=question, headers=headers, verify=NO_TLS, timeout=60)
    listed = httpx2.get(f"{gateway.url}/v1/models/", headers=headers, verify=NO_TLS, timeout=60)

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"]
    assert "acme/demo-8b" in {model["id"] for model in listed.json()["data"]}
