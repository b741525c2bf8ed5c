"""The answers that the docs show; ``python -m tests.support.pages.record`` records them again.

They come from a gateway of the tests with the simulator behind it, and are written into the
reference's file and into the guides, whose blocks name their recording (```` ```json NAME ````).
"""

from __future__ import annotations

import json
import re
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from django.conf import settings

from accounts.keys import admin_keys
from accounts.keys.keys import mint
from accounts.models import Organization, Plan, Scope
from svc_project.reference.recordings import FILE, Recording
from tests.support.clients.conversation import city_tool
from tests.support.live import NO_TLS, Gateway, fetch
from tests.support.speech.accounts import speech_account

MODEL: Final = "acme/demo-8b"
PRONUNCIATIONS: Final = "/v1/pronunciations"
HELLO: Final = [{"role": "user", "content": "say: Hello, Ada!"}]
WEATHER: Final = [{"role": "user", "content": "What is the weather in Paris?"}]
THERMOMETER: Final = [{"role": "user", "content": 'Read the thermometer in "Lyon": 21 degrees.'}]
TOOLS: Final = [city_tool("get_weather")]
READING: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
BROKEN: Final = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "note": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SPOKEN: Final = (
    "The morning train was late again, and so we walked along the river to the old mill."
)
_BLOCK: Final = re.compile(r"^```(?:json|http) ([\w-]+)\n.*?^```$", re.MULTILINE | re.DOTALL)
_SECRET: Final = re.compile(r"\b(svc_live_|svc_read_|sk_)[0-9A-Za-z]{36}\b")
_TOKEN: Final = re.compile(r"/\w+/\w+-[0-9a-f]{32}\b")
"""The end of a link for a new password."""
_SHOWN_HEADERS: Final = re.compile(
    r"(?:retry-after|x-should-retry|x-ratelimit-|x-quota-|x-upstream-|x-gateway-|www-).*"
)


def schema(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reading", "schema": document}}


@dataclass
class Place:
    """A gateway with keys of every scope, and names that no other test has."""

    gateway: Gateway
    own: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.chat_key = mint(self.gateway.organization, Scope.INFERENCE, "checkout").secret
        self.read_key = mint(self.gateway.organization, Scope.READ, "finance").secret
        self.admin_key = admin_keys.mint("terraform").secret
        self.speech = speech_account(self.gateway, Plan.STANDARD)
        self.clone = self.key = ""

    def ask(self, method: str, path: str, key: str, body: Any = None) -> httpx2.Response:
        is_speech = key == self.speech.key or not key
        base = self.speech.url if is_speech else self.gateway.url
        content = None if body is None else json.dumps(body)
        return fetch(base + path, method, key=key, content=content)

    def chat(self, **fields: Any) -> httpx2.Response:
        body = {"model": MODEL, "messages": HELLO, **fields}
        return self.ask("POST", "/v1/chat/completions", self.chat_key, body)

    def say(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self.ask(method, path, self.speech.key, body)

    def pronunciation(self) -> str:
        """The id of the first pronunciation."""
        found: str = self.say("GET", PRONUNCIATIONS).json()["data"][0]["id"]
        return found

    def manage(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self.ask(method, f"/manage/v1/{path}", self.admin_key, body)

    def limited(self) -> httpx2.Response:
        """A request of an organization whose tokens another one holds, which still streams."""
        small = Organization.objects.create(
            name=f"small-{self.own}", requests_per_minute=60, tokens_per_minute=1000
        )
        key = mint(small, Scope.INFERENCE, "checkout").secret
        slow = [{"role": "user", "content": "Tell me more. [[sim tokens=50 pace=2]]"}]
        body = {"model": MODEL, "messages": slow, "stream": True, "max_completion_tokens": 800}
        with httpx2.stream(
            *("POST", f"{self.gateway.base_url}/chat/completions"),
            headers={"authorization": f"Bearer {key}"},
            json=body,
            timeout=60,
            verify=NO_TLS,
        ):
            return self.ask("POST", "/v1/chat/completions", key, {**body, "messages": HELLO})

    def shown(self, text: str) -> str:
        """``text`` without what is of this run: ports, names, secrets."""
        for mine, name in {
            f":{self.gateway.port}": ":8000",
            f":{self.gateway.speech_port}": ":8001",
            f":{self.gateway.simulator.port}": ":9000",
            f"-{self.own}": "",
        }.items():
            text = text.replace(mine, name)
        return _SECRET.sub(r"\1...", _TOKEN.sub("/...", text))


Send = Callable[[Place], httpx2.Response]
Case = tuple[str, str, str, Send]
"""A recording's name, the operation that it stands beside, its title, and the request."""

CHAT: Final[tuple[Case, ...]] = (
    ("chat", "createChatCompletion", "A whole answer", lambda it: it.chat()),
    ("chat-stream", "createChatCompletion", "A stream", lambda it: it.chat(stream=True)),
    (
        *("tool-call", "createChatCompletion", "A tool call"),
        lambda it: it.chat(messages=WEATHER, tools=TOOLS),
    ),
    (
        *("tool-call-stream", "", "A tool call in a stream"),
        lambda it: it.chat(messages=WEATHER, tools=TOOLS, stream=True),
    ),
    (
        *("json-schema", "createChatCompletion", "Structured output"),
        lambda it: it.chat(response_format=schema(READING), messages=THERMOMETER),
    ),
    (
        *("error-field", "createChatCompletion", "A wrong field"),
        lambda it: it.chat(temperature=3),
    ),
    (
        *("error-model", "createChatCompletion", "An unknown model"),
        lambda it: it.chat(model="acme/demo-9b"),
    ),
    (
        *("schema-refused", "createChatCompletion", "A refused schema"),
        lambda it: it.chat(response_format=schema(BROKEN)),
    ),
    ("rate-limited", "createChatCompletion", "Over a limit", Place.limited),
    (
        *("chat-stream-error", "", "A stream that fails"),
        lambda it: it.chat(
            stream=True, messages=[{"role": "user", "content": "say: Hello! [[sim fault=cut@1]]"}]
        ),
    ),
    ("error-401", "", "A wrong key", lambda it: it.ask("GET", "/v1/models", "svc_live_wrong")),
    ("models", "listModels", "The models", lambda it: it.ask("GET", "/v1/models", it.chat_key)),
    ("model", "getModel", "A model", lambda it: it.ask("GET", f"/v1/models/{MODEL}", it.chat_key)),
    ("usage", "getUsage", "A summary", lambda it: it.ask("GET", "/v1/usage", it.read_key)),
    (
        *("export", "exportUsage", "A page"),
        lambda it: it.ask("GET", "/v1/usage/export?limit=1", it.read_key),
    ),
)
SPEECH: Final[tuple[Case, ...]] = (
    (
        *("speech", "createSpeech", "A file"),
        lambda it: it.say("POST", "/v1/audio/speech", {"voice": "ava", "input": "Hello!"}),
    ),
    (
        *("speech-events", "createSpeech", "Events"),
        lambda it: it.say(
            "POST", "/v1/audio/speech", {"voice": "ava", "input": "Hello!", "stream_format": "sse"}
        ),
    ),
    (
        *("speech-error", "createSpeech", "An unknown voice"),
        lambda it: it.say("POST", "/v1/audio/speech", {"voice": "nobody", "input": "Hello!"}),
    ),
    ("voices", "listVoices", "The voices", lambda it: it.say("GET", "/v1/models")),
    ("voice", "getVoice", "A voice", lambda it: it.say("GET", "/v1/models/ava")),
    ("named-voices", "listNamedVoices", "Voices", lambda it: it.say("GET", "/v1/audio/voices")),
    ("named-models", "listNamedModels", "The model", lambda it: it.say("GET", "/v1/audio/models")),
    (
        *("clone", "createVoice", "A new voice"),
        lambda it: it.say(
            *("POST", "/v1/voices"),
            {
                "name": "Anna",
                "consent": True,
                "audio_b64": b64encode(it.speech.speak(SPOKEN).content).decode(),
            },
        ),
    ),
    (
        *("clone-deleted", "deleteVoice", "It is gone"),
        lambda it: it.say("DELETE", f"/v1/voices/{it.clone}"),
    ),
    (
        *("pronunciation", "putPronunciation", "A new pronunciation"),
        lambda it: it.say("POST", PRONUNCIATIONS, {"word": "nginx", "pronunciation": "engine x"}),
    ),
    (
        *("pronunciations", "listPronunciations", "All of them"),
        lambda it: it.say("GET", PRONUNCIATIONS),
    ),
    (
        *("pronunciation-deleted", "deletePronunciation", "It is gone"),
        lambda it: it.say("DELETE", f"{PRONUNCIATIONS}/{it.pronunciation()}"),
    ),
    ("health", "getHealth", "It serves", lambda it: it.ask("GET", "/health", "")),
)
_USER: Final = "users/ada-{own}@acme.example"
_ORGANIZATION: Final = "organizations/acme-{own}"
_MANAGED: Final[tuple[tuple[str, str, str, Any], ...]] = (
    ("putOrganization", "PUT", _ORGANIZATION, {"plan": "standard", "requests_per_minute": 600}),
    ("getOrganization", "GET", _ORGANIZATION, None),
    ("changeOrganization", "PATCH", _ORGANIZATION, {"requests_per_minute": 600}),
    ("listOrganizations", "GET", "organizations?limit=1", None),
    ("putUser", "PUT", _USER, {"organizations": ["acme-{own}"]}),
    ("getUser", "GET", _USER, None),
    ("changeUser", "PATCH", _USER, {"active": True}),
    ("linkUser", "POST", f"{_USER}/link", None),
    ("listUsers", "GET", "users?organization=acme-{own}", None),
    (
        *("createKey", "POST", "keys"),
        {"organization": "acme-{own}", "scope": "inference", "label": "shop"},
    ),
    ("getKey", "GET", "keys/{key}", None),
    ("changeKey", "PATCH", "keys/{key}", {"requests_per_minute": 600}),
    ("listKeys", "GET", "keys?organization=acme-{own}", None),
    ("rotateKey", "POST", "keys/{key}/rotate", {"overlap_seconds": 3600}),
    ("revokeKey", "DELETE", "keys/{key}", None),
    ("disableUser", "DELETE", _USER, None),
    ("disableOrganization", "DELETE", _ORGANIZATION, None),
    ("getCatalog", "GET", "catalog", None),
    (
        *("putCatalog", "PUT", "catalog?dry_run=true"),
        {"voices": [{"id": "ava", "engine_voice": "en-us+f4"}]},
    ),
    ("listPrices", "GET", f"prices?model={MODEL}", None),
)


def record(gateway: Gateway) -> list[Recording]:
    """Every recording, from ``gateway``."""
    place = Place(gateway)
    found = []
    for name, operation, title, send in (*CHAT, *SPEECH):
        answer = send(place)
        if name == "clone":
            place.clone = answer.json()["id"]
        found.append(_recorded(place, name, operation, title, answer))
    found.insert(len(CHAT) + 2, _session(place))
    return [*found, *_managed(place)]


def _managed(place: Place) -> Iterator[Recording]:
    for operation, method, path, body in _MANAGED:
        names = {"own": place.own, "key": place.key}
        sent = None if body is None else json.loads(json.dumps(body).replace("{own}", place.own))
        answer = place.manage(method, path.format(**names), sent)
        if operation == "createKey":
            place.key = answer.json()["api_key_id"]
        yield _recorded(place, operation, operation, "The answer", answer)


def _recorded(
    place: Place, name: str, operation: str, title: str, answer: httpx2.Response
) -> Recording:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    headers = {
        each: value for each, value in answer.headers.items() if _SHOWN_HEADERS.fullmatch(each)
    }
    if kind.startswith("audio/"):
        headers = {"content-type": kind, **headers}
        body = f"({len(answer.content):,} bytes of sound)"
    elif kind == "application/json":
        body = json.dumps(answer.json(), indent=2, ensure_ascii=False)
    else:
        body = re.sub(r'("audio":"\w{12})[^"]+', r"\1...", answer.text).rstrip()
    return Recording(name, operation, title, answer.status_code, headers, place.shown(body))


def _session(place: Place) -> Recording:
    """Both sides of a short session, a message in each line."""
    lines = []
    with place.speech.connect() as socket:
        for message in (
            {"type": "start", "voice": "ava"},
            {"type": "text", "text": "One sentence. And ano"},
            {"type": "text", "text": "ther one."},
            {"type": "done"},
        ):
            socket.send(json.dumps(message))
            lines.append(f"you      {json.dumps(message)}")
            if message["type"] == "start":
                lines.append(f"gateway  {socket.recv()!s}")
        for answer in socket:
            said = f"({len(answer):,} bytes of WAV)" if isinstance(answer, bytes) else answer
            lines.append(f"gateway  {said}")
    lines.append("gateway  closes with 1000")
    return Recording("session", "streamSpeech", "A session", 101, {}, "\n".join(lines))


def guides_with(recordings: Mapping[str, Recording]) -> dict[Any, str]:
    """The text of each guide, with the recordings that its blocks name."""

    def block(found: re.Match[str]) -> str:
        return f"{found[0].partition(chr(10))[0]}\n{recordings[found[1]].text}\n```"

    folder = settings.BASE_DIR / "docs/guides"
    return {path: _BLOCK.sub(block, path.read_text()) for path in sorted(folder.glob("*.md"))}


def write(found: list[Recording]) -> None:
    """Write ``found`` into the file of the reference and into the guides."""
    plain = [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]
    FILE.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    for path, text in guides_with({each.name: each for each in found}).items():
        path.write_text(text)
