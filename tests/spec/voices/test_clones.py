"""``POST /v1/voices``, ``DELETE /v1/voices/{id}`` and the voice list, against a running gateway."""

from __future__ import annotations

import time

import pytest

from accounts.models import Plan
from speech.audio.wav import canonical_wav, clip_from_base64
from speech.models import CloneAudio, VoiceClone
from speech.voices.clones.clips import cipher
from tests.support.builders import speech_rows
from tests.support.live import Gateway
from tests.support.speech.accounts import account_of, speech_account
from tests.support.speech.caller import CLIP, SpeechAccount
from tests.support.speech.errors import kind_of

ENGLISH, HINDI = ["ava", "emma", "leo", "oliver"], ["arjun", "asha", "meera", "rohan"]


def test_a_clone_is_created_listed_and_deleted(client: SpeechAccount) -> None:
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
    assert kind_of(client.delete(clone["id"])) == (404, "not_found_error")


def test_the_clip_is_kept_sealed_and_goes_with_the_deletion(client: SpeechAccount) -> None:
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


def test_accounts_do_not_see_each_others_clones(gateway: Gateway, client: SpeechAccount) -> None:
    clone_id = client.create("Anna").json()["id"]
    other, colleague = speech_account(gateway), account_of(gateway, client.organization)

    assert other.own() == []
    assert kind_of(other.delete(clone_id)) == (404, "not_found_error")
    assert other.create("anna").status_code == 201
    assert client.own() == [clone_id]
    assert colleague.own() == [clone_id]
    assert colleague.delete(clone_id).status_code == 200


@pytest.mark.parametrize(
    "voice_id", ["ava", "voice_", "voice_" + "0" * 32, "voice_" + "0" * 32 + "%00", "x" * 5000]
)
def test_an_id_of_no_clone_of_the_caller_is_not_found(client: SpeechAccount, voice_id: str) -> None:
    assert kind_of(client.delete(voice_id)) == (404, "not_found_error")


@pytest.mark.parametrize(
    ("plan", "visible"), [("standard", ENGLISH), ("enterprise", ENGLISH + HINDI)]
)
def test_hindi_voices_are_listed_for_enterprise_accounts(
    gateway: Gateway, plan: str, visible: list[str]
) -> None:
    client = speech_account(gateway, Plan(plan))

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
    standard, enterprise = (
        speech_account(gateway, Plan.STANDARD),
        speech_account(gateway, Plan.ENTERPRISE),
    )

    assert kind_of(standard.create("\uff21\uff36\uff21")) == (409, "invalid_request_error")
    assert kind_of(enterprise.create("Asha")) == (409, "invalid_request_error")
    assert standard.create("Asha").status_code == 201


def test_a_name_is_taken_once_in_any_spelling(client: SpeechAccount) -> None:
    assert client.create("Straße").status_code == 201

    answer = client.create(" STRASSE")

    assert kind_of(answer) == (409, "invalid_request_error")
    assert answer.headers["x-should-retry"] == "false"


def test_a_deletion_frees_name_and_place(client: SpeechAccount) -> None:
    kept = [speech_rows.clone(client.organization).pk for _ in range(9)]
    tenth = client.create("Anna").json()["id"]
    answer = client.create("Bea")
    assert kind_of(answer) == (400, "invalid_request_error")
    assert "10 cloned voices" in answer.json()["error"]["message"]
    # A taken name has its own error, also when no slot is free.
    assert kind_of(client.create("Anna")) == (409, "invalid_request_error")

    client.delete(tenth)

    again = client.create("Anna")
    assert again.status_code == 201
    assert set(client.own()) == {*kept, again.json()["id"]}
    assert again.json()["id"] != tenth
