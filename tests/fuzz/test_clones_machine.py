"""The life of clones against a model: two accounts on the live gateway, in any order of calls."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from speech.errors import MOST_CLONES
from speech.models import CloneAudio, VoiceClone
from tests.support.fuzzing.state_machines import run_state_machine
from tests.support.live import Gateway
from tests.support.speech.client import SpeechClient, error_of, new_client

NAMES = st.sampled_from(
    ["Anna", "ANNA", " anna ", "ａｎｎａ", "Straße", "STRASSE", "Zoë", "Zoe\u0308", "Ben", "Ben 2"]  # noqa: RUF001
)
GLOBAL = "ava"
WRONG = st.sampled_from(
    [{"consent": False}, {"name": " "}, {"name": "a" * 41}, {"audio_b64": "AAAA"}, {"name": None}]
)


def folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name.strip()).casefold())


class Clones(RuleBasedStateMachine):
    """The existing and the deleted clones of each of two accounts, by id."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self.gateway = gateway

    @initialize()
    def found(self) -> None:
        self.clients = [new_client(self.gateway) for _ in range(2)]
        self.names: list[dict[str, str]] = [{}, {}]
        self.deleted: list[str] = []
        self.filled = False

    @rule(one=st.integers(0, 1), name=NAMES)
    def create(self, one: int, name: str) -> None:
        answer = self.clients[one].create(name)
        if folded(name) in self.names[one].values():
            assert error_of(answer) == (409, "invalid_request_error")
        elif len(self.names[one]) == MOST_CLONES:
            assert error_of(answer) == (400, "invalid_request_error")
        else:
            assert answer.status_code == 201, answer.text
            made = answer.json()
            assert made["name"] == name.strip()
            assert made["id"] not in {*self.names[0], *self.names[1], *self.deleted}
            self.names[one][made["id"]] = folded(name)

    @precondition(lambda self: not self.filled)
    @rule(one=st.integers(0, 1))
    def fill(self, one: int) -> None:
        """Create clones up to the limit and one more, once: each creation is analysed."""
        self.filled = True
        for number in range(MOST_CLONES + 1 - len(self.names[one])):
            self.create(one, f"filling {number}")

    @rule(one=st.integers(0, 1), fields=WRONG)
    def create_wrongly(self, one: int, fields: dict[str, Any]) -> None:
        answer = self.clients[one].create(**{"name": "never", **fields})
        assert error_of(answer) == (400, "invalid_request_error")

    @rule(one=st.integers(0, 1), choice=st.integers(0))
    def delete(self, one: int, choice: int) -> None:
        voice = self.some_voice(choice)
        answer = self.clients[one].delete(voice)
        if voice in self.names[one]:
            assert answer.status_code == 200
            assert answer.json() == {"id": voice, "object": "voice", "deleted": True}
            del self.names[one][voice]
            self.deleted.append(voice)
        else:
            assert error_of(answer) == (404, "not_found_error")

    @rule(one=st.integers(0, 1), choice=st.integers(0))
    def speak(self, one: int, choice: int) -> None:
        voice = self.some_voice(choice)
        client = self.clients[one]
        answer = client.request(
            "POST",
            "/v1/audio/speech",
            json={"voice": voice, "input": "Hi.", "response_format": "pcm"},
        )
        if voice in self.names[one] or voice == GLOBAL:
            assert answer.status_code == 200, answer.text
            assert answer.content
        else:
            assert error_of(answer) == (400, "proxy_error")

    def some_voice(self, choice: int) -> str:
        """Choose a voice of any account, perhaps a deleted or a global one."""
        voices = [*self.names[0], *self.names[1], *self.deleted, GLOBAL, "voice_" + "0" * 32]
        return voices[choice % len(voices)]

    @invariant()
    def each_account_has_its_own_and_no_more(self) -> None:
        if not hasattr(self, "clients"):
            return
        for client, names in zip(self.clients, self.names, strict=True):
            assert client.own() == list(names)
            assert len(names) <= MOST_CLONES
            assert len(set(names.values())) == len(names)
            assert self.kept(client) == set(names)

    def kept(self, client: SpeechClient) -> set[str]:
        """Return the ids whose audio is stored."""
        own = VoiceClone.objects.filter(organization=client.organization)
        found = CloneAudio.objects.filter(clone__in=own)
        return set(found.values_list("clone_id", flat=True))


@pytest.mark.long
def test_clones_agree_with_the_model_after_any_calls(gateway: Gateway) -> None:
    run_state_machine(lambda: Clones(gateway), runs=4, steps=16)
