"""The simulated speech server for tests of the HTTP engine, and its backend descriptions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from speech.engines import EngineError, Utterance
from speech.engines.http.backend import BackendRef
from speech.engines.http.engine import HttpEngine
from tests.support.model_servers.simulator import MANAGE
from tests.support.until import until_async

DEADLINE = 60.0


@dataclass(frozen=True)
class SpeechServer:
    """``url`` is the address without ``/v1``."""

    url: str
    client: httpx2.Client

    def account(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get("/sim/requests").json()
        return found

    def requests(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The requests that it got, oldest first."""
        entries: list[dict[str, Any]] = self.account()["requests"]
        return [entry for entry in entries if kind in (None, entry["kind"])]

    def requests_with(self, marker: str) -> list[dict[str, Any]]:
        """The speech requests whose text has ``marker`` in it."""
        return [entry for entry in self.requests("speech") if marker in entry["body"]["input"]]

    async def runs(self, count: int) -> None:
        """Return once ``count`` requests run there."""
        await until_async(lambda: asyncio.to_thread(lambda: self.account()["running"] == count))

    def clear_requests(self) -> None:
        self.client.delete("/sim/requests").raise_for_status()


@contextmanager
def running_speech_server(*arguments: str) -> Iterator[SpeechServer]:
    """Start ``manage.py simulate_backend`` with a speech port, and stop it at the end."""
    command = [sys.executable, str(MANAGE), "simulate_backend", "--port", "0"]
    command += ["--speech-port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            announced = process.stdout.readline().strip()
            assert announced.startswith("The speech simulator listens on "), announced
            url = announced.rsplit(" ", 1)[1].removesuffix("/v1")
            with httpx2.Client(base_url=url, timeout=DEADLINE, trust_env=False) as client:
                yield SpeechServer(url, client)
        finally:
            process.terminate()
            process.wait(DEADLINE)


PROFILES: dict[str, dict[str, Any]] = {
    "file": {"delivery": "file"},
    "pcm": {"delivery": "pcm", "extra_fields": {"stream_format": "audio"}},
    "sse": {"delivery": "sse", "extra_fields": {"stream_format": "sse"}},
}


def described(url: str, profile: str = "file", **changes: Any) -> BackendRef:
    """A backend at ``url`` in one of ``PROFILES``."""
    columns: dict[str, Any] = {
        "id": "11111111-1111-4111-8111-111111111111",
        "name": "tts-1",
        "base_url": f"{url}/v1",
        "api_key": None,
        "model": "simulated",
        "delivery": "file",
        "sample_rate": 24_000,
        "word_times": "none",
        "speech_path": "/audio/speech",
        "text_field": "input",
        "voice_field": "voice",
        "format_field": "response_format",
        "language_field": "",
        "speed_field": "speed",
        "instructions_field": "",
        "normalizes_text": False,
        "extra_fields": {},
        "sounds": {},
        "clone_mode": "none",
        "clone_field": "ref_audio",
        "clone_as_data_url": True,
        "upload_path": "/audio/voices",
        "upload_name_field": "name",
        "upload_extra_fields": {},
        "max_concurrency": 16,
        "first_byte_seconds": 10.0,
        "total_seconds": 60.0,
    }
    return BackendRef(**{**columns, **PROFILES[profile], **changes})


@dataclass
class Clips:
    """``CloneClips`` in memory."""

    wavs: dict[str, bytes] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    deleted_while_uploading: bool = False

    async def clip(self, clone_id: str) -> bytes:
        await asyncio.sleep(0)
        if clone_id not in self.wavs:
            raise EngineError("The clone was deleted.")
        return self.wavs[clone_id]

    async def upload_name(self, clone_id: str, backend_id: str) -> str | None:
        await asyncio.sleep(0)
        return self.names.get((clone_id, backend_id))

    async def uploaded(self, clone_id: str, backend_id: str, name: str) -> None:
        await asyncio.sleep(0)
        if self.deleted_while_uploading:
            raise EngineError("The clone was deleted.")
        self.names[clone_id, backend_id] = name


@asynccontextmanager
async def speaking(backend: BackendRef, clips: Clips | None = None) -> AsyncIterator[HttpEngine]:
    """An engine for ``backend``, closed at the end."""
    engine = HttpEngine(backend, clips or Clips())
    try:
        yield engine
    finally:
        await engine.close()


def said(text: str, **changes: Any) -> Utterance:
    return Utterance(**{"text": text, "language": "en", "engine_voice": "ava", **changes})


async def heard(engine: HttpEngine, utterance: Utterance) -> bytes:
    """Speak an utterance and join its pieces, none of which may be empty."""
    pieces = [piece async for piece in engine.speak(utterance)]
    assert pieces
    assert all(pieces)
    return b"".join(pieces)
