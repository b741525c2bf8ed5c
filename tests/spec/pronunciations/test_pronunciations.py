"""``/v1/pronunciations`` and what is spoken, against a running gateway."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from accounts.models import AuditEntry
from core.ids import uuid7_hex
from speech.errors import MOST_PRONUNCIATIONS
from speech.models import WordPronunciation
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount
from tests.support.speech.errors import kind_of
from tests.support.until import until

PATH = "/v1/pronunciations"
TOKYO = "\u6771\u4eac"
TEXT = "Run **nginx** kubectl for $3."


def put(client: SpeechAccount, **fields: Any) -> httpx2.Response:
    body = {"word": "nginx", "pronunciation": "engine x", **fields}
    return client.request("POST", PATH, content=json.dumps(body).encode())


def listed(client: SpeechAccount) -> list[dict[str, Any]]:
    answer = client.get(PATH)
    assert answer.status_code == 200
    assert answer.json()["object"] == "list"
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


@pytest.fixture
def client(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway)


def test_one_is_put_listed_replaced_deleted_and_audited(client: SpeechAccount) -> None:
    answer = put(client, word="  nginx\t")

    assert answer.status_code == 201
    made = answer.json()
    assert {name: made[name] for name in made if name not in ("id", "created")} == {
        "object": "pronunciation",
        "word": "nginx",
        "pronunciation": "engine x",
        "alphabet": "respelling",
        "language": None,
        "case_sensitive": False,
    }
    assert listed(client) == [made]

    again = put(client, word="NGINX", pronunciation="en jinks")
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    assert put(client, word="Nginx", case_sensitive=True).status_code == 201
    assert put(client, language="hi").status_code == 201
    assert len(listed(client)) == 3

    deletion = client.request("DELETE", f"{PATH}/{made['id']}")
    assert deletion.status_code == 200
    assert deletion.json() == {"id": made["id"], "object": "pronunciation", "deleted": True}
    assert kind_of(client.request("DELETE", f"{PATH}/{made['id']}")) == (404, "not_found_error")

    entries = AuditEntry.objects.filter(subject_id=made["id"]).order_by("pk")
    assert [entry.verb for entry in entries] == ["created", "changed", "deleted"]
    assert {(entry.source, entry.organization_id) for entry in entries} == {
        ("api", client.organization.pk)
    }
    assert all(entry.actor.startswith("API key sk_") for entry in entries)
    assert entries[1].changes["pronunciation"] == ["engine x", "en jinks"]


def test_they_belong_to_the_account(client: SpeechAccount, gateway: Gateway) -> None:
    made = put(client).json()["id"]
    other = speech_account(gateway)

    assert listed(other) == []
    assert kind_of(other.request("DELETE", f"{PATH}/{made}")) == (404, "not_found_error")
    assert len(listed(client)) == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"word": None}, "'word' is required"),
        ({"word": 5}, "'word' must be a string"),
        ({"word": " .,! "}, "'word' has no letter or digit"),
        ({"word": "a" * 101}, "'word' has 101 characters"),
        ({"pronunciation": "a\u202eb"}, "'pronunciation' holds U+202E"),
        ({"alphabet": "arpabet"}, "'alphabet' must be 'respelling' or 'ipa'"),
        ({"alphabet": "ipa", "pronunciation": "x~"}, "'pronunciation': '~'"),
        ({"language": "fr"}, "'language' must be 'en' or 'hi'"),
        ({"case_sensitive": "yes"}, "'case_sensitive' must be true or false"),
    ],
)
def test_a_wrong_field_is_refused_by_name(
    client: SpeechAccount, fields: dict[str, Any], named: str
) -> None:
    answer = put(client, **fields)

    assert kind_of(answer) == (400, "invalid_request_error")
    assert named in answer.json()["error"]["message"]
    assert listed(client) == []


def test_the_number_and_the_body_are_bounded(client: SpeechAccount) -> None:
    WordPronunciation.objects.bulk_create(
        WordPronunciation(
            id=f"pron_{uuid7_hex()}",
            organization=client.organization,
            word=f"word{number}",
            word_key=f"word{number}",
            pronunciation="x",
            alphabet="respelling",
        )
        for number in range(MOST_PRONUNCIATIONS)
    )

    assert kind_of(put(client)) == (400, "invalid_request_error")
    assert put(client, word="word7").status_code == 200
    assert len(listed(client)) == MOST_PRONUNCIATIONS
    assert kind_of(put(client, word="x" * 9000)) == (413, "invalid_request_error")


def timed(speech: SpeechAccount, voice: str = "ava") -> tuple[list[dict[str, Any]], int]:
    """The words that are spoken of ``TEXT`` in a session, and the characters of its row."""
    with speech.session(voice, timestamps="word", keep_open=True) as session:
        session.text(TEXT)
        session.done()
        words = session.receive()["words"]
        session.frame()
        done = session.receive()
    assert done["type"] == "utterance.done"
    return words, done["characters"]


def test_running_workers_speak_them_and_charge_the_text_as_it_was_sent(gateway: Gateway) -> None:
    speech = speech_account(gateway)
    assert [word["text"] for word in timed(speech)[0]][:2] == ["Run", "nginx"]

    for word, said in (("nginx", "engine x"), ("kubectl", "koob control"), ("$3", "too much")):
        assert put(speech, word=word, pronunciation=said).status_code == 201
    expected = ["Run", "engine", "x", "koob", "control", "for", "too", "much"]
    until(lambda: [word["text"] for word in timed(speech)[0]] == expected)

    words, characters = timed(speech)
    assert [TEXT[word["from"] : word["to"]] for word in words] == [
        *("Run", "nginx", "nginx", "kubectl", "kubectl", "for", "$3", "$3")
    ]
    assert characters == len(TEXT)
    other = speech_account(gateway)
    assert "nginx" in [word["text"] for word in timed(other)[0]]


def test_speech_servers_get_them_and_make_unreadable_words_readable(
    gateway: Gateway, speech: SpeechAccount, speech_server: Any, remote: dict[str, str]
) -> None:
    marker = uuid7_hex()
    assert speech.speak(TOKYO).status_code == 400
    assert put(speech, word=marker, pronunciation=f"{marker} said").status_code == 201
    assert put(speech, word=TOKYO.lower(), pronunciation="Tokyo").status_code == 201

    until(lambda: speech.speak(TOKYO).status_code == 200)
    assert speech.speak(f"Now {marker}.", voice=remote["file"]).status_code == 200
    [request] = speech_server.requests_with(marker)
    assert request["body"]["input"] == f"Now {marker} said."


UNREADABLE = "\u8fd9" * 300 + "\u3002"


@pytest.mark.parametrize("before", ["nothing", "unreadable", "dropped"])
def test_a_session_lengthens_only_what_it_is_charged_for(
    client: SpeechAccount, before: str
) -> None:
    """All of its sentences share one allowance of 100 code points; those that are not charged add none."""
    assert put(client, word="a", pronunciation="b " * 49 + "b").status_code == 201
    until(lambda: _words_of(client, "a") > 1)
    with client.session(keep_open=True, timestamps="word") as session:
        if before == "unreadable":
            session.text(f"{UNREADABLE}\n")
            assert session.receive()["type"] == "error"
        elif before == "dropped":
            session.text("Go. " + "c" * 300 + "\n")
            assert [word["text"] for word in session.receive()["words"]] == ["Go"]
            session.frame()
            session.send(type="clear")
            # Unless the other sentence was made meanwhile.
            while isinstance(message := session.socket.recv(60), bytes) or "cleared" not in message:
                pass
        session.text("a.\n" * 20)
        session.done()
        lengthened = 0
        for _ in range(20):
            lengthened += len(session.receive()["words"]) > 1
            session.frame()
    assert lengthened == (100 + 2 * len("a.\n" * 20)) // 98


def _words_of(client: SpeechAccount, text: str) -> int:
    """How many words the only sentence of a session has."""
    with client.session(timestamps="word") as session:
        session.text(text)
        session.done()
        return len(session.receive()["words"])
