"""Refused requests of a real gateway: what is kept of them, and whose they are."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from accounts.keys import keys
from accounts.models import Scope
from core.errors import error_named
from tests.support.live import Gateway, fetch
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until
from usage.models import Refusal, RefusalCount

FIELDS = ("route", "status", "error", "param", "model_identifier")
MODEL = "acme/demo-8b"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "secret", "schema": {"type": "secret"}}}
CHATS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"temperature": 9}, ("chat", 400, "invalid-field", "temperature", MODEL)),
    ({"n": 2}, ("chat", 400, "unsupported_parameter", "n", MODEL)),
    ({"model": "gpt-9"}, ("chat", 404, "model_not_found", "model", "")),
    ({"model": "acme/my secret"}, ("chat", 404, "model_not_found", "model", "")),
    ({"model": "sk-proj-secret78901234567890ab"}, ("chat", 404, "model_not_found", "model", "")),
    (
        {"response_format": SCHEMA},
        ("chat", 400, "unsupported_json_schema", "response_format", MODEL),
    ),
]


def kept(organization_id: uuid.UUID, count: int) -> list[Refusal]:
    own = Refusal.objects.filter(organization_id=organization_id)
    return list(until(lambda: own if own.count() >= count else None))


def facts(refusal: Refusal) -> tuple[Any, ...]:
    return tuple(getattr(refusal, name) for name in FIELDS)


def test_chats_that_were_refused(gateway: Gateway) -> None:
    gateway.organization.requests_per_minute = 100
    gateway.organization.tokens_per_minute = 2000
    gateway.organization.save()
    # A key that is not known waits until all changes are read; it must be no refused request here.
    assert fetch(f"{gateway.base_url}/models", key=gateway.mint()).status_code == 200
    answers = [gateway.chat("Hello", **fields) for fields, _ in CHATS]
    assert gateway.chat("[[sim fault=status@400]] it has a row").status_code == 400
    assert gateway.chat("Hello", max_tokens=1).status_code == 200
    answers.append(gateway.chat("Hello", max_tokens=100_000))
    answers.append(gateway.get("/chat/completions"))

    found = {each.request_id: each for each in kept(gateway.organization.pk, len(answers))}

    assert [facts(found[each.headers["x-request-id"]]) for each in answers] == [
        *(expected for _, expected in CHATS),
        ("chat", 429, "rate_limit_exceeded", "", MODEL),
        ("chat", 405, "method-not-allowed", "", ""),
    ]
    assert len(found) == len(answers)
    for answer in (answers[0], answers[2]):
        assert found[answer.headers["x-request-id"]].message == answer.json()["error"]["message"]
    assert not [each for each in found.values() if "secret" in each.message]
    assert {each.api_key_id for each in found.values()} == {gateway.api_key.pk}
    counts = RefusalCount.objects.filter(organization_id=gateway.organization.pk)
    assert sorted(counts.values_list("error", "count"))[2:4] == [
        ("model_not_found", 3),
        ("rate_limit_exceeded", 1),
    ]
    assert all(error_named(each.error) for each in found.values())


def test_keys_that_do_not_work_here(gateway: Gateway) -> None:
    revoked = keys.mint(gateway.organization, Scope.INFERENCE)
    keys.revoke(revoked.api_key)
    reading = keys.mint(gateway.organization, Scope.READ)
    invented = keys.mint(gateway.organization, Scope.INFERENCE)
    invented.api_key.delete()
    for secret in (invented.secret, "nonsense", revoked.secret, reading.secret):
        answer = gateway.post({}, headers={"authorization": f"Bearer {secret}"})
        assert answer.status_code == 401

    found = kept(gateway.organization.pk, 2)

    assert {(each.api_key_id, each.error) for each in found} == {
        (revoked.api_key.pk, "invalid-credential"),
        (reading.api_key.pk, "invalid-credential"),
    }


def test_speech_that_was_refused(speech: SpeechAccount) -> None:
    assert speech.speak("Hello.", voice="nobody").status_code == 400
    for first in ({"type": "start", "voice": "nobody"}, {"type": "secret", "text": "secret"}):
        with speech.connect() as socket:
            conversation = Conversation(socket)
            conversation.send(**first)
            conversation.rest()
    with speech.session() as session:  # it has a row
        session.send(type="secret")
        session.rest()
    with pytest.raises(InvalidStatus), speech.connect(headers=reading(speech)):
        pass

    found = kept(speech.organization.pk, 4)

    assert sorted(facts(each)[:4] for each in found) == [
        ("speech", 400, "unknown-voice", ""),
        ("stream", 400, "invalid-field", "type"),
        ("stream", 400, "unknown-voice", ""),
        ("stream", 401, "invalid-credential", ""),
    ]
    assert not [each for each in found if "secret" in each.message]


def reading(speech: SpeechAccount) -> dict[str, str]:
    """The headers of a key of another scope."""
    return {"authorization": f"Bearer {speech.mint(Scope.READ)}"}
