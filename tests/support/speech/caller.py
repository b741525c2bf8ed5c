"""An account of the live speech surface: what it asks for, its sessions and its rows."""

from __future__ import annotations

import io
import json
import socket as sockets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import soundfile
from openai import OpenAI
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from accounts.keys.keys import mint
from accounts.models import ApiKey, Organization, Scope
from speech.audio.pcm import SAMPLE_RATE
from tests.support.builders import clips
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until
from usage.models import SpeechDay, SpeechRow

SENTENCE = "The morning train was late again."
CLIP = clips.base64_of(clips.wav(clips.voice(4.0)))
"""A usable reference clip of 4 seconds, in base64."""
TWO_SENTENCES = "The morning train was late again. We walked along the river."


@dataclass
class SpeechAccount:
    """One organization with a speech key."""

    gateway: Gateway
    organization: Organization
    api_key: ApiKey
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.speech_port}"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def openai(self, **options: Any) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0, **options)

    def post(self, body: Any, **options: Any) -> httpx2.Response:
        """POST ``body``: bytes unchanged, any other value as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.post(
            f"{self.url}/v1/audio/speech",
            content=content,
            headers={**self.headers, **options.pop("headers", {})},
            timeout=options.pop("timeout", 60),
            verify=NO_TLS,
            **options,
        )

    def streaming(self, text: str, voice: str, **fields: Any) -> AbstractContextManager[Any]:
        """The answer to a request for raw samples, to be read while it comes."""
        return httpx2.stream(
            "POST",
            f"{self.url}/v1/audio/speech",
            json={"voice": voice, "input": text, "response_format": "pcm", **fields},
            headers=self.headers,
            timeout=60,
            verify=NO_TLS,
        )

    def speak(self, text: str = SENTENCE, voice: str = "ava", **fields: Any) -> httpx2.Response:
        return self.post({"voice": voice, "input": text, **fields})

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        options = {"headers": self.headers, "timeout": 60.0, **options}
        return httpx2.request(method, self.url + path, verify=NO_TLS, **options)

    def create(self, name: str = "Anna", **fields: Any) -> httpx2.Response:
        """Create a clone with valid fields, except for ``fields``."""
        body = {"name": name, "audio_b64": CLIP, "consent": True, **fields}
        return self.request("POST", "/v1/voices", json=body)

    def delete(self, voice_id: str) -> httpx2.Response:
        return self.request("DELETE", f"/v1/voices/{voice_id}")

    def listed(self) -> list[dict[str, Any]]:
        """The list of ``GET /v1/models``, which a busy host may refuse for a moment."""

        def answered() -> httpx2.Response | None:
            answer = self.get("/v1/models")
            return None if answer.status_code == 503 else answer

        answer = until(answered)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    def voices(self) -> list[str]:
        """The ids of all listed voices."""
        return [entry["id"] for entry in self.listed()]

    def own(self) -> list[str]:
        """The ids of the account's clones, as listed."""
        return [entry["id"] for entry in self.listed() if entry["owned_by"] == "user"]

    @contextmanager
    def connect(self, **options: Any) -> Iterator[ClientConnection]:
        """A WebSocket, before ``start``."""
        address = self.url.replace("http", "ws", 1) + "/v1/audio/speech/stream"
        with connect(
            options.pop("address", address),
            additional_headers=options.pop("headers", self.headers),
            max_size=None,
            open_timeout=60,
            close_timeout=2,
            **options,
        ) as socket:
            yield socket

    @contextmanager
    def session(self, voice: str = "ava", **fields: Any) -> Iterator[Conversation]:
        """A WebSocket session that is ready."""
        with self.connect() as socket:
            conversation = Conversation(socket)
            conversation.send(type="start", voice=voice, **fields)
            assert conversation.receive()["type"] == "ready"
            yield conversation

    @contextmanager
    def slow_session(self) -> Iterator[Conversation]:
        """A session that is ready, on a small receive buffer that holds few unread messages."""
        raw = self._small_socket()
        with self.connect(sock=raw, max_queue=1) as socket:
            conversation = Conversation(socket)
            conversation.send(type="start", voice="ava")
            assert conversation.receive()["type"] == "ready"
            yield conversation

    @contextmanager
    def asking(self, **fields: Any) -> Iterator[sockets.socket]:
        """Send a request on a socket with a small receive buffer, and read nothing yet."""
        body = json.dumps({"voice": "ava", "response_format": "pcm", **fields}).encode()
        head = (
            "POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"authorization: Bearer {self.key}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        with self._small_socket() as raw:
            raw.sendall(head.encode() + body)
            yield raw

    def _small_socket(self) -> sockets.socket:
        raw = sockets.socket()
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        raw.settimeout(60)
        raw.connect(("127.0.0.1", self.gateway.speech_port))
        return raw

    def mint(self, scope: Scope = Scope.SPEECH) -> str:
        return mint(self.organization, scope, "test").secret

    def rows(self) -> list[SpeechRow]:
        return list(SpeechRow.objects.filter(organization_id=self.organization.pk))

    def row(self, request_id: str) -> SpeechRow:
        """The row of one request; that of a slow database comes through the journal, later."""
        return until(SpeechRow.objects.filter(request_id=request_id).first)

    def rows_when(self, count: int) -> list[SpeechRow]:
        """Wait for ``count`` rows."""
        until(lambda: len(self.rows()) >= count)
        return self.rows()

    def row_when_written(self) -> SpeechRow:
        """The one row of a request whose client disconnected before the end."""
        [row] = until(self.rows)
        return row

    def spoken_today(self) -> int:
        """The characters that the ledger has of today."""
        days = SpeechDay.objects.filter(organization_id=self.organization.pk)
        return sum(days.values_list("characters", flat=True))


class Conversation:
    """A WebSocket session, message by message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def text(self, text: str) -> None:
        self.send(type="text", text=text)

    def done(self) -> None:
        self.send(type="done")

    def receive(self, seconds: float = 60.0) -> dict[str, Any]:
        """The next message, which must be JSON."""
        message = self.socket.recv(seconds)
        assert isinstance(message, str), "a frame of audio where a message was expected"
        found: dict[str, Any] = json.loads(message)
        return found

    def frame(self, seconds: float = 60.0) -> bytes:
        """The next message, which must be a frame of audio."""
        message = self.socket.recv(seconds)
        assert isinstance(message, bytes), message
        return message

    def rest(self) -> list[bytes | dict[str, Any]]:
        """All messages up to the close, in order."""
        found: list[bytes | dict[str, Any]] = []
        try:
            while True:
                message = self.socket.recv(60)
                found.append(message if isinstance(message, bytes) else json.loads(message))
        except ConnectionClosed:
            return found

    @property
    def close_code(self) -> int:
        """Wait for the server's close; return its code."""
        self.rest()
        code = self.socket.close_code
        assert code is not None, "not closed"
        return code


def decoded(content: bytes) -> tuple[bytes, int, int]:
    """PCM, rate and channels of a complete file."""
    with soundfile.SoundFile(io.BytesIO(content)) as clip:
        pcm = clip.read(dtype="int16").tobytes()
        return pcm, clip.samplerate, clip.channels


def seconds(content: bytes) -> float:
    """The length of a complete file's sound."""
    return len(decoded(content)[0]) / 2 / SAMPLE_RATE
