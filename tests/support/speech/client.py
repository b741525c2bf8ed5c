"""A client of the speech surface of a running gateway."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

import httpx2

from accounts.keys.keys import mint
from accounts.models import Organization, Plan, Scope
from tests.support.builders import clips
from tests.support.live import NO_TLS, Gateway
from tests.support.speech import errors
from tests.support.until import until

CLIP = clips.base64_of(clips.wav(clips.voice(4.0)))
"""A usable reference clip of 4 seconds, in base64."""


@dataclass
class SpeechClient:
    """A client with one speech key; ``organization`` is its account."""

    url: str
    key: str
    organization: Organization

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        options = {"headers": self.headers, "timeout": 60.0, **options}
        return httpx2.request(method, self.url + path, verify=NO_TLS, **options)

    def post(self, body: bytes | dict[str, Any]) -> httpx2.Response:
        """``POST /v1/voices``."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/v1/voices", content=content)

    def create(self, name: str = "Anna", **fields: Any) -> httpx2.Response:
        """Create a clone with valid fields, except for ``fields``."""
        return self.post({"name": name, "audio_b64": CLIP, "consent": True, **fields})

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

    def own(self) -> list[str]:
        """Ids of the account's clones, as listed."""
        return [entry["id"] for entry in self.listed() if entry["owned_by"] == "user"]


def client_of(gateway: Gateway, organization: Organization) -> SpeechClient:
    """A client with a new speech key of ``organization``."""
    key = mint(organization, Scope.SPEECH, "test").secret
    return SpeechClient(f"http://127.0.0.1:{gateway.speech_port}", key, organization)


def new_client(gateway: Gateway, plan: Plan = Plan.STANDARD) -> SpeechClient:
    """A client of a new account."""
    organization = Organization.objects.create(
        name=f"speech {uuid.uuid4()}",
        plan=plan,
        speech_requests_per_minute=None,
        speech_characters_per_day=None,
    )
    return client_of(gateway, organization)


def error_of(answer: httpx2.Response) -> tuple[int, str]:
    """Status and ``error.type``, after the shape was checked."""
    status, kind, message = errors.error_of(answer)
    assert message
    return status, kind
