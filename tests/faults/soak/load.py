"""Clients of a soak: chats, streams, disconnects, speech over HTTP and WebSocket, and a probe."""

from __future__ import annotations

import json
import random
import threading
import time
import traceback
import wave
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO

import httpx2
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from tests.faults.soak.place import MODEL, Place
from tests.support.faults.seen import Seen, chat_body, new_marker, read_answer
from tests.support.live import NO_TLS

SENTENCE = "Bees fly. "
_TIMEOUT = 60.0
_PROBE_SECONDS = 0.1
_BREATH_SECONDS = 0.1


@dataclass(frozen=True)
class ChatSeen:
    """A chat as its client saw it; ``prompt``: the SHA-256 of its last message; ``left``: it disconnected."""

    prompt: str
    seen: Seen
    left: bool = False


@dataclass(frozen=True)
class SpeechSeen:
    """A speech request or session as its client saw it.

    ``characters`` of a complete one; ``milliseconds`` of received audio; ``code``: the error's type
    over HTTP, the close code of a session.
    """

    request_id: str | None = None
    status: int | None = None
    code: str | int | None = None
    complete: bool = False
    characters: int = 0
    milliseconds: int = 0
    session: bool = False


@dataclass
class Load:
    """All clients and their results. ``probes``: when each short chat ended, and its seconds."""

    place: Place
    chats: list[ChatSeen] = field(default_factory=list)
    speeches: list[SpeechSeen] = field(default_factory=list)
    probes: list[tuple[float, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Answers that a client could not parse: always an error."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, at_once: int, seed: int) -> None:
        works = [(self._work, random.Random(seed * 1000 + each)) for each in range(at_once)]
        self._threads = [threading.Thread(target=work, args=(dice,)) for work, dice in works]
        self._threads.append(threading.Thread(target=self._probe))
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(2 * _TIMEOUT)
            if thread.is_alive():
                self.failures.append("a client waits for ever")

    def _work(self, dice: random.Random) -> None:
        with httpx2.Client(verify=NO_TLS, timeout=_TIMEOUT) as client:
            while not self._stopping.is_set():
                if not self._one(client, dice):
                    time.sleep(_BREATH_SECONDS)

    def _one(self, client: httpx2.Client, dice: random.Random) -> bool:
        """Send a random request; return whether its answer was complete."""
        what = dice.random()
        try:
            if what < 0.80:
                leaves = what < 0.06
                # Those who leave ask for so much that none of them can have been sent all of it.
                tokens = 400 if leaves else dice.choice([3, 10, 40])
                chat = self._chat(client, tokens, streamed=what < 0.5, leave=leaves)
                self.chats.append(chat)
                return chat.seen.complete
            speech = self._speak(client) if what < 0.92 else self._converse(dice)
            self.speeches.append(speech)
        except (AssertionError, ValueError, KeyError) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.failures.append(f"{type(error).__name__} in {place.name}, {place.line}: {error}")
            return False
        return speech.complete

    def _probe(self) -> None:
        """Send a short chat ten times a second, to measure the latency that clients see."""
        with httpx2.Client(verify=NO_TLS, timeout=_TIMEOUT) as client:
            while not self._stopping.is_set():
                began = time.monotonic()
                chat = self._chat(client, 1, streamed=False, leave=False)
                self.chats.append(chat)
                now = time.monotonic()
                self.probes.append((now, now - began if chat.seen.complete else _TIMEOUT))
                time.sleep(_PROBE_SECONDS)

    def _chat(self, client: httpx2.Client, tokens: int, *, streamed: bool, leave: bool) -> ChatSeen:
        marker = new_marker()
        text = f"[[sim tokens={tokens} pace=100]]"
        body = chat_body(marker, text, MODEL, stream=streamed)
        prompt = sha256(body["messages"][-1]["content"].encode()).hexdigest()
        head: httpx2.Response | None = None
        read = b""
        url = f"http://127.0.0.1:{self.place.port}/v1/chat/completions"
        with (
            suppress(httpx2.TransportError),
            client.stream("POST", url, json=body, headers=self._headers("inference")) as answer,
        ):
            head = answer
            for piece in answer.iter_bytes():
                read += piece
                if leave:
                    break
        if head is None:
            return ChatSeen(prompt, Seen(marker, streamed), leave)
        found = read_answer(marker, head.status_code, dict(head.headers), read)
        return ChatSeen(prompt, replace(found, streamed=streamed), leave)

    def _speak(self, client: httpx2.Client) -> SpeechSeen:
        body = {"voice": "ava", "input": SENTENCE.strip(), "response_format": "wav"}
        url = f"http://127.0.0.1:{self.place.speech_port}/v1/audio/speech"
        try:
            answer = client.post(url, json=body, headers=self._headers("speech"))
        except httpx2.TransportError:
            return SpeechSeen()
        request_id = answer.headers["x-request-id"]
        if answer.status_code != 200:
            code = answer.json()["error"]["type"]
            return SpeechSeen(request_id, answer.status_code, code)
        with wave.open(BytesIO(answer.content)) as sound:
            milliseconds = sound.getnframes() * 1000 // sound.getframerate()
        return SpeechSeen(request_id, 200, None, True, len(SENTENCE.strip()), milliseconds)

    def _converse(self, dice: random.Random) -> SpeechSeen:
        """Run a session of some sentences with a pause between them."""
        seen = SpeechSeen(session=True)
        url = f"ws://127.0.0.1:{self.place.speech_port}/v1/audio/speech/stream"
        headers = self._headers("speech")
        try:
            with connect(url, additional_headers=headers, open_timeout=_TIMEOUT) as socket:
                assert socket.response is not None
                request_id = socket.response.headers["x-request-id"]
                seen = replace(seen, request_id=request_id, status=101)
                return self._spoken(socket, seen, dice)
        except InvalidHandshake as error:
            response = getattr(error, "response", None)
            status = None if response is None else response.status_code
            return replace(seen, status=status)
        except ConnectionClosed as error:
            return replace(seen, code=error.rcvd.code if error.rcvd else None)
        except (OSError, TimeoutError):
            return seen

    @staticmethod
    def _spoken(socket: ClientConnection, seen: SpeechSeen, dice: random.Random) -> SpeechSeen:
        def send(**message: object) -> None:
            socket.send(json.dumps(message))

        send(type="start", voice="ava", response_format="pcm")
        if (kind := json.loads(socket.recv(_TIMEOUT))["type"]) != "ready":
            assert kind == "error"
            socket.recv(_TIMEOUT)  # the session was not admitted, and is closed
        sentences, size = dice.choice([1, 2, 5]), 0
        for _ in range(sentences):
            send(type="text", text=SENTENCE)
            time.sleep(dice.uniform(0, 0.5))
        send(type="done")
        while isinstance(message := socket.recv(_TIMEOUT), bytes):
            size += len(message)
        complete = json.loads(message)["type"] == "session.done"
        return replace(seen, complete=complete, characters=sentences * len(SENTENCE))

    def _headers(self, scope: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.place.keys[scope]}"}
