"""The lists of voices in the shapes for clients, and the spellings of paths."""

from __future__ import annotations

import json

import httpx2
import pytest

from accounts.models import Plan
from tests.support.live import NO_TLS, Gateway
from tests.support.speech.caller import SENTENCE, SpeechAccount, seconds
from tests.support.speech.client import SpeechClient, client_of, error_of, new_client


def test_a_voice_is_retrieved_by_its_id(client: SpeechClient) -> None:
    clone = client.create("Anna").json()["id"]

    for entry in client.listed():
        assert client.get(f"/v1/models/{entry['id']}").json() == entry
    assert client.get(f"/v1/models/{clone}").json()["owned_by"] == "user"


def test_a_voice_that_is_not_listed_cannot_be_retrieved(
    gateway: Gateway, client: SpeechClient
) -> None:
    foreign = new_client(gateway).create("Anna").json()["id"]
    own = client.create("Anna").json()["id"]
    client.delete(own)

    told = {
        (*error_of(client.get(f"/v1/models/{voice}")), client.get(f"/v1/models/{voice}").text)
        for voice in (foreign, own, "asha", "nobody", "a/b", "voice_" + "0" * 32)
    }

    [(status, kind, _)] = told
    assert (status, kind) == (404, "not_found_error")
    assert new_client(gateway, Plan.ENTERPRISE).get("/v1/models/asha").status_code == 200


def test_speech_clients_list_the_same_voices_by_name(client: SpeechClient) -> None:
    clone = client.create("Anna Ö").json()["id"]

    found = client.get("/v1/audio/voices").json()

    assert set(found) == {"voices"}
    assert [voice["id"] for voice in found["voices"]] == [each["id"] for each in client.listed()]
    named = {voice["id"]: voice for voice in found["voices"]}
    assert named["ava"] == {"id": "ava", "name": "ava", "language": "en"}
    assert named[clone] == {"id": clone, "name": "Anna Ö", "language": "en"}
    assert "asha" not in named


def test_enterprise_accounts_see_the_language_of_hindi_voices(gateway: Gateway) -> None:
    found = new_client(gateway, Plan.ENTERPRISE).get("/v1/audio/voices").json()["voices"]

    assert {"id": "asha", "name": "asha", "language": "hi"} in found


def test_speech_clients_find_one_model(client: SpeechClient) -> None:
    assert client.get("/v1/audio/models").json() == {"models": [{"id": "svc", "name": "svc"}]}


@pytest.mark.parametrize("path", ["/v1/models/ava", "/v1/audio/voices", "/v1/audio/models"])
def test_the_lists_need_a_speech_key_and_are_only_read(
    gateway: Gateway, client: SpeechClient, path: str
) -> None:
    for headers in ({}, {"authorization": "Bearer no"}, {"authorization": f"Bearer {gateway.key}"}):
        assert error_of(client.get(path, headers=headers)) == (401, "auth_error")
    refused = client.request("POST", path)
    assert error_of(refused) == (405, "invalid_request_error")
    assert refused.headers["allow"] == "GET, HEAD"


def test_a_slash_at_the_end_of_a_path_is_ignored(speech: SpeechAccount, gateway: Gateway) -> None:
    body = json.dumps({"voice": "ava", "input": SENTENCE}).encode()
    url = f"{speech.url}/v1/audio/speech/"
    spoken = httpx2.post(url, content=body, headers=speech.headers, verify=NO_TLS, timeout=60)

    assert spoken.status_code == 200
    assert seconds(spoken.content) > 1
    assert speech.row(spoken.headers["x-request-id"]).characters == len(SENTENCE)
    client = client_of(gateway, speech.organization)
    assert client.get("/v1/models/").json() == client.get("/v1/models").json()
    assert client.get("/v1/models/ava/").json()["id"] == "ava"
    assert client.get("/v1/audio/voices/").status_code == 200
    made = client.request("POST", "/v1/voices/", content=b"{}")
    assert error_of(made) == (400, "invalid_request_error")
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
