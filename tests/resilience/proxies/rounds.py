"""Rounds of an attack, the other organization's chat, and the attacker's next request.

Everything goes through one proxy that has one connection to the gateway, one request after the
other. A round ends the test when a client gets the answer to another one's request, or when the
ledger has a row without an answered request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tests.resilience.proxies.attacks import (
    INFERENCE_HOST,
    UPGRADES,
    Attack,
    Keys,
    attack,
    chat,
    request,
)
from tests.resilience.proxies.connection import SECONDS, Answer, Connection
from tests.resilience.proxies.fronts import Front

MOST_FINDINGS = 20
"""After as many the rounds end: each may have cost a timeout."""

WEBSOCKET = UPGRADES["websocket"]
WITHOUT_WEBSOCKET = frozenset({200, 403})
"""How an upgrade may be answered on a path that has no WebSocket: by the path, or by the proxy."""
SESSION = frozenset({101, 400, 401})
"""How one is answered on the path of the WebSocket where the body did not reach the gateway: it opens
a session, or has no valid handshake, or no key."""
HELD_SECONDS = 0.05
"""How long the attacker waits where no answer can come."""


@dataclass
class Tally:
    """What happened; ``wrong`` is empty if all got their own answers."""

    rounds: int = 0
    wrong: list[str] = field(default_factory=list)
    attacker_ids: list[str] = field(default_factory=list)
    """The request ids of the chats that the attacker was answered."""
    victim_ids: list[str] = field(default_factory=list)


class _Player:
    """One organization with a kept connection to the proxy."""

    def __init__(self, port: int, name: str, key: str) -> None:
        self.name = name
        self.key = key
        self.kept = Connection(port)
        self.ids: list[str] = []

    def question(self, word: str, **fields: object) -> bytes:
        """A chat that is answered by ``word``."""
        body = chat(f"say: {word}", **fields)
        return request("POST /v1/chat/completions", INFERENCE_HOST, self.key, body=body)

    def wrong(self, answer: Answer, word: str) -> str:
        """What is wrong with the answer to ``question``; "" if it is the right one."""
        if answer.status != 200 or answer.text != word:
            return self.misled(answer, word)
        self.ids.append(answer.request_id)
        return ""

    def misled(self, answer: Answer, word: str) -> str:
        return f"{self.name} asked for {word} and got {answer.status} {answer.body[:300]!r}"

    async def chat(self, word: str, **fields: object) -> str:
        """Have a whole chat; what is wrong with it."""
        try:
            found = self.wrong(await self.kept.ask(self.question(word, **fields)), word)
        except (OSError, EOFError) as error:
            found = f"{self.name} got no answer to {word}: {error!r}"
        if found:
            self.kept.close()
        return found

    async def ask_for_a_model(self, word: str) -> str:
        """Ask for a model that is not there, which costs little; what is wrong with the answer."""
        body = chat("hello", model=word)
        asked = request("POST /v1/chat/completions", INFERENCE_HOST, self.key, body=body)
        try:
            answer = await self.kept.ask(asked)
        except (OSError, EOFError) as error:
            self.kept.close()
            return f"{self.name} got no answer to {word}: {error!r}"
        if answer.status == 404 and f"'{word}'".encode() in answer.body:
            return ""
        self.kept.close()
        return self.misled(answer, word)


class Rounds:
    """The attacker and the victim at the proxy ``front``, which listens on ``port``."""

    def __init__(self, front: Front, port: int, keys: Keys, victim_key: str) -> None:
        self._front = front
        self._port = port
        self._keys = keys
        self._attacker = _Player(port, "the attacker", keys.inference)
        self._victim = _Player(port, "the victim", victim_key)
        self._tally = Tally(attacker_ids=self._attacker.ids, victim_ids=self._victim.ids)

    async def play(self, numbers: range) -> Tally:
        try:
            for number in numbers:
                await self._round(number)
                self._tally.rounds += 1
                if len(self._tally.wrong) >= MOST_FINDINGS:
                    break
        finally:
            self._attacker.kept.close()
            self._victim.kept.close()
        return self._tally

    async def _round(self, number: int) -> None:
        made = attack(number, self._keys)
        if number % 20 == 7:
            self._note(f"{number}: an upgrade behind a chat", await self._behind_a_chat(number))
        else:
            self._note(made.name, await self._send(made))
        streamed: dict[str, object] = {"stream": True} if number % 4 == 0 else {}
        self._note(made.name, await self._victim.chat(f"secret{number}", **streamed))
        if number % 10 == 0:
            found = await self._attacker.chat(f"own{number}")
        else:
            found = await self._attacker.ask_for_a_model(f"acme/own{number}")
        self._note(made.name, found)

    def _note(self, name: str, found: str) -> None:
        if found:
            self._tally.wrong.append(f"after {name}: {found}")

    async def _send(self, made: Attack) -> str:
        """Send an attack on a connection of its own; the attacker may hang up without an answer."""
        is_held = made.asks_for_websocket and self._front.keeps_frames_back
        connection = Connection(self._port)
        try:
            for part in made.writes:
                await connection.send(part)
                await asyncio.sleep(0)
            if not made.waits:
                return ""
            answer = await connection.answer(HELD_SECONDS if is_held else SECONDS)
        except (OSError, EOFError) as error:
            if is_held or (made.may_be_reset and not isinstance(error, TimeoutError)):
                return ""
            return f"the attacker got no answer: {error!r}"
        finally:
            connection.close()
        expected = made.statuses | (SESSION if is_held else frozenset())
        is_refused = answer.status in self._front.refuses and not answer.request_id
        if answer.text or not (is_refused or answer.status in expected):
            return f"the attacker got {answer.status} {answer.body[:300]!r}"
        return ""

    async def _behind_a_chat(self, number: int) -> str:
        """Write a chat and behind it an upgrade, which must not overtake the chat's answer."""
        word, connection = f"first{number}", Connection(self._port)
        upgrade = request("GET /v1/models", INFERENCE_HOST, self._keys.inference, *WEBSOCKET)
        try:
            await connection.send(self._attacker.question(word) + upgrade)
            if found := self._attacker.wrong(await connection.answer(), word):
                return found
            behind = await connection.answer()
        except (OSError, EOFError) as error:
            return f"the attacker got no answer: {error!r}"
        finally:
            connection.close()
        if behind.status not in WITHOUT_WEBSOCKET | self._front.refuses:
            return f"the attacker got {behind.status} {behind.body[:300]!r}"
        return ""
