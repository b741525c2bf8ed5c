"""Each failed request is found by the id that its caller got: one ``grep`` says whose it was and why."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accounts.keys import admin_keys, keys
from accounts.models import Scope
from speech.models import SpeechBackend, Voice
from tests.support.clients.conversation import limited
from tests.support.clients.raw_client import RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway, events, fetch
from tests.support.live_catalog import backend, nowhere, publish
from tests.support.speech.accounts import speech_account
from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until
from usage.models import Refusal, SpeechRow, UsageRow

pytestmark = [pytest.mark.timeout(300), pytest.mark.redis, pytest.mark.postgresql]

SECRET = "the-launch-is-on-monday"
VOICE = "found-remote"
REMOTE = {
    "model": "simulated",
    "normalizes_text": True,
    "first_byte_seconds": 2.0,
    "total_seconds": 4.0,
}
SCHEMA = {"type": "json_schema", "json_schema": {"name": SECRET, "schema": {"type": SECRET}}}
TOOL = {"type": "function", "function": {"name": "weather"}}

CHATS: dict[str, tuple[dict[str, Any] | bytes, int, str, str | None, str | None]] = {
    "no JSON": (b'{"' + SECRET.encode(), 400, "invalid_request_error", "invalid-field", None),
    "a field": ({"temperature": 9}, 400, "invalid_request_error", "invalid-field", "temperature"),
    "a role": (
        {"messages": [{"role": SECRET}]}, 400, "invalid_request_error", "invalid-field",
        "messages[0].role",
    ),
    "several answers": ({"n": 2}, 400, "unsupported_parameter", None, "n"),
    "a schema": ({"response_format": SCHEMA}, 400, "unsupported_json_schema", None, "response_format"),
    "tools": (
        {"model": "acme/demo-mini", "tools": [TOOL]}, 400, "model_does_not_support_tools", None,
        "tools",
    ),
    "an unknown model": ({"model": SECRET}, 404, "model_not_found", None, "model"),
    "too large": (b" " * 2_000_000, 413, "request_too_large", None, None),
}  # fmt: skip
"""Refused chats: what is sent, and the status, code, reason and param of the line."""

FAULTS: dict[str, tuple[int, str, str]] = {
    "status=401": (500, "backend_error", "answers 401: its key, address or model is wrong"),
    "status=422": (400, "backend_rejected_request", "answers 422"),
    "status=429": (503, "server_overloaded", "answers 429"),
    "status=500": (500, "backend_error", "answers 500"),
    "redirect": (500, "backend_protocol_error", "answers 302"),
    "html": (500, "backend_protocol_error", "its answer is no completion"),
    "error_200": (500, "backend_error", "answers 200 with an error"),
    "cut": (500, "backend_unavailable", "connection lost: ServerDisconnected"),
    "reset@3": (500, "backend_unavailable", "connection lost: ReadError"),
    "slow_header=9": (503, "backend_timeout", "no answer within 0.4 s"),
    "hang@3": (503, "backend_timeout", "nothing came for 0.4 s"),
    "negative_usage": (
        500, "backend_protocol_error", "The model server reported invalid token usage.",
    ),
}  # fmt: skip
STREAM_FAULTS: dict[str, tuple[str, str]] = {
    "cut@3": ("backend_unavailable", "connection lost: ReadError"),
    "hang@3": ("backend_timeout", "nothing came for 0.4 s"),
    "garbage@3": ("backend_protocol_error", "an event is no chunk"),
    "error_frame@3": ("backend_error", "an event is an error"),
    "no_finish": (
        "backend_protocol_error", "The model server ended its answer without a finish reason.",
    ),
}  # fmt: skip

USAGE: dict[str, tuple[int, str, str | None]] = {
    f"/usage?group_by={SECRET}": (400, "invalid_query", None),
    "/usage?start=2026-02-01&end=2026-01-01": (400, "period_inverted", None),
    "/usage/export?start=2025-01-01&end=2026-01-01": (400, "period_too_long", None),
    f"/usage/export?cursor={SECRET}": (400, "invalid_cursor", None),
    "/usage/export?format=csv&cursor=x": (400, "cursor_not_supported", None),
    f"/models/{SECRET}": (404, "model_not_found", None),
    f"/{SECRET}": (404, "not_found_error", "not-found"),
}

SPOKEN: dict[str, tuple[dict[str, Any], int, str, str, str | None]] = {
    "no voice": ({"voice": SECRET}, 400, "proxy_error", "unknown-voice", None),
    "no text": ({"input": ""}, 400, "invalid_request_error", "invalid-field", "input"),
    "a speed": ({"speed": 9}, 400, "invalid_request_error", "invalid-field", "speed"),
    "Chinese": ({"input": "你好"}, 400, "invalid_request_error", "unreadable-text", None),
    "a failure": (
        {"voice": VOICE, "input": f"[[sim fault=status@500]] {SECRET}"}, 502, "proxy_error",
        "The speech server failed.", None,
    ),
    "silence": (
        {"voice": VOICE, "input": f"[[sim fault=hang@100]] {SECRET}"}, 504, "proxy_error",
        "The speech server took too long.", None,
    ),
}  # fmt: skip
SESSIONS: dict[str, tuple[Any, str, str, str | None]] = {
    "no start": (
        {"type": "text", "text": SECRET},
        "invalid_request_error",
        "invalid-field",
        "type",
    ),
    "no JSON": ("{" + SECRET, "invalid_request_error", "invalid-field", None),
    "an unknown voice": ({"type": "start", "voice": SECRET}, "proxy_error", "unknown-voice", None),
}


@dataclass(frozen=True)
class Found:
    """What a caller got, and what the line of its id must say."""

    name: str
    request_id: str
    line: dict[str, Any]
    said: str = ""
    """What a line on standard error says, too."""


class Walk:
    """Sends each kind of failing request to one gateway."""

    def __init__(self, gateway: Gateway, server: SpeechServer) -> None:
        self.gateway = gateway
        owner, prefix = str(gateway.organization.pk), gateway.api_key.prefix
        self.mine = {"organization_id": owner, "key_prefix": prefix}
        self.secrets = [SECRET, gateway.key]
        self.account = speech_account(gateway, speech_requests_per_minute=40)
        # At once, so that both workers have read them when they are asked for.
        impatient = {"first_byte_seconds": 0.4, "idle_seconds": 0.4, "running_usage": "vllm"}
        self.model = publish(gateway, backend(gateway, **impatient)).identifier
        self.away = publish(gateway, nowhere(gateway)).identifier
        self.full = publish(gateway, backend(gateway, max_concurrency=1)).identifier
        remote, _ = SpeechBackend.objects.get_or_create(
            name="found", defaults={"base_url": f"{server.url}/v1", **REMOTE}
        )
        Voice.objects.get_or_create(id=VOICE, defaults={"backend": remote, "engine_voice": "noah"})
        until(lambda: VOICE in self.account.voices())

    def all(self) -> Iterator[Found]:
        yield from self.chats()
        yield from self.model_servers()
        yield from self.limits()
        yield from self.keys()
        yield from self.protocol()
        yield from self.pages()
        yield from self.speech()

    def found(self, name: str, answer: httpx2.Response, said: str = "", /, **line: Any) -> Found:
        return Found(
            f"{name} ({answer.status_code})", answer.headers["x-request-id"], self.mine | line, said
        )

    def chats(self) -> Iterator[Found]:
        chat = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": SECRET}]}
        for name, (fields, status, code, reason, param) in CHATS.items():
            body = fields if isinstance(fields, bytes) else chat | fields
            line = {"status": status, "code": code, "reason": reason, "param": param}
            yield self.found(name, self.gateway.post(body), route="chat", **line)

    def model_servers(self) -> Iterator[Found]:
        gateway, model = self.gateway, self.model
        for fault, (status, code, reason) in FAULTS.items():
            answer = gateway.chat(f"{SECRET} {fault} [[sim fault={fault} tokens=9]]", model)
            line = {"status": status, "code": code, "reason": reason, "model": model, "attempts": 1}
            quiet = status == 400 or code == "server_overloaded"
            yield self.found(fault, answer, "" if quiet else reason, **line)
        for fault, (code, reason) in STREAM_FAULTS.items():
            text = f"{SECRET} in a stream [[sim fault={fault} tokens=9]]"
            answer = gateway.chat(text, model, stream=True)
            assert events(answer.text)[-1]["error"]["code"] == code
            line = {"status": 200, "code": code, "reason": reason, "streamed": True}
            yield self.found(f"{fault}, streamed", answer, reason, **line, model=model)
        answer = gateway.chat(SECRET, self.away)
        reason = "cannot connect: refused or unreachable"
        line = {"status": 500, "code": "backend_unavailable", "reason": reason, "model": self.away}
        yield self.found("nobody listens", answer, reason, **line)
        yield from self._one_slot()

    def _one_slot(self) -> Iterator[Found]:
        full = self.full
        with RawClient(self.gateway) as running:
            running.chat(f"{SECRET} [[sim tokens=2000 pace=20]]", full, stream=True)
            running.read_until(2, b"data: ")
            line = {"status": 503, "code": "server_overloaded", "model": full}
            answer = self.gateway.chat("no slot", full)
            yield self.found("no slot", answer, **line, reason="no slot within 2 s")
            request_id = running.request_id
        gone = {"status": 499, "code": "client_disconnected", "model": full, "streamed": True}
        yield Found("disconnected", request_id, self.mine | gone)

    def limits(self) -> Iterator[Found]:
        poor = self.gateway
        for name, limit, most, reason in (
            ("requests", {"requests_per_minute": 1}, 1, "requests of the organization"),
            ("tokens", {"tokens_per_minute": 50}, 60, "tokens of the organization"),
        ):
            poor = limited(poor, **limit)
            poor.sees_changes()
            answer = [poor.chat("say: a", max_tokens=most) for _ in range(3)][-1]
            owner, prefix = str(poor.organization.pk), poor.api_key.prefix
            whose = {"organization_id": owner, "key_prefix": prefix}
            line = {"status": 429, "code": "rate_limit_exceeded", "model": "acme/demo-8b"}
            yield self.found(f"429 {name}", answer, **whose, **line, reason=reason)

    def keys(self) -> Iterator[Found]:
        line = {"status": 401, "code": "authentication_error", "reason": "invalid-credential"}
        nobody = {"organization_id": None}
        revoked = keys.mint(self.gateway.organization, Scope.INFERENCE)
        reading = keys.mint(self.gateway.organization, Scope.READ)
        keys.revoke(revoked.api_key)
        self.secrets += [revoked.secret, reading.secret]
        for name, key in (("revoked", revoked), ("reading", reading)):
            answer = until(partial(self._unauthorized, key.secret))
            whose = nobody | {"key_prefix": key.api_key.prefix}
            yield self.found(f"a key that is {name}", answer, **whose, **line)
        answer = fetch(f"{self.gateway.base_url}/chat/completions", "POST")
        yield self.found("no key", answer, **line, **nobody, key_prefix=None)
        answer = self.gateway.get("/chat/completions")
        line = {"status": 405, "code": "invalid_request_error", "reason": "method-not-allowed"}
        yield self.found("a method", answer, **line, **nobody)

    def _unauthorized(self, key: str) -> httpx2.Response | None:
        """A 401: a worker takes a moment to read that a key was revoked."""
        answer = fetch(f"{self.gateway.base_url}/chat/completions", "POST", key=key)
        return answer if answer.status_code == 401 else None

    def protocol(self) -> Iterator[Found]:
        nobody = {"organization_id": None, "key_prefix": None, "code": "invalid_request_error"}
        for name, sent, reason in (
            ("no HTTP", f"NOT {SECRET}\r\n\r\n", "not-http"),
            ("two hosts", "GET /v1/models HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "not-one-host"),
            ("half a head", "GET /v1/models HTTP/1.1\r\nhost: a", "head-too-slow"),
        ):
            with RawClient(self.gateway) as raw:
                raw.send(sent.encode())
                raw.rest()
                status = int(raw.received.split()[1])
                line = {"route": "protocol", "status": status, "reason": reason}
                yield Found(name, raw.request_id, nobody | line)
        with RawClient(self.gateway) as raw:
            raw.head("content-length: 100", key=self.gateway.key)
            status, headers, _ = raw.answer()
            line = {"status": status, "reason": "invalid-field", "code": "invalid_request_error"}
            yield Found("half a body", headers["x-request-id"], self.mine | line)
        other = fetch(f"{self.gateway.base_url}/models", headers={"host": "other.example"})
        line = {"status": 400, "route": "refused", "reason": "unknown-host"}
        yield self.found("an unknown host", other, **nobody, **line)

    def pages(self) -> Iterator[Found]:
        gateway = self.gateway
        read = keys.mint(gateway.organization, Scope.READ)
        self.secrets.append(read.secret)
        for path, (status, code, reason) in USAGE.items():
            line = {"route": "pages", "status": status, "code": code, "reason": reason}
            answer = fetch(f"{gateway.base_url}{path}", key=read.secret)
            yield self.found(path, answer, **line, key_prefix=read.api_key.prefix)
        nobody = {"organization_id": None, "key_prefix": None}
        made = admin_keys.mint("terraform")
        admin, shown = made.secret, made.admin_key.prefix
        self.secrets.append(admin)
        for name, path, key, line in (
            ("management", "organizations", "", {"status": 401, "code": "authentication_error"}),
            (
                "management's query",
                f"keys?{SECRET}=1",
                admin,
                {"status": 400, "code": "invalid_query"},
            ),
            (
                "management's 404",
                f"keys/{SECRET}",
                admin,
                {"status": 404, "code": "not_found_error"},
            ),
        ):
            answer = fetch(f"{gateway.url}/manage/v1/{path}", key=key)
            yield self.found(
                name, answer, **nobody | {"key_prefix": shown if key else None}, **line
            )
        forged = fetch(f"{gateway.url}/console/login", "POST", data={"username": SECRET})
        yield self.found("a forged form", forged, "Forbidden (CSRF", **nobody, status=403)
        ended = fetch(f"{gateway.url}/console/playground/chat", "POST")
        yield self.found("a playground", ended, **nobody, status=401, reason="session-ended")

    def speech(self) -> Iterator[Found]:
        account = self.account
        self.secrets.append(account.key)
        mine = {
            "organization_id": str(account.organization.pk),
            "key_prefix": account.api_key.prefix,
        }
        for name, (fields, status, code, reason, param) in SPOKEN.items():
            answer = account.post({"voice": "ava", "input": SECRET, **fields})
            line = {"status": status, "code": code, "reason": reason, "param": param}
            yield self.found(name, answer, **mine, **line, surface="speech")
        for name, (sent, code, reason, param) in SESSIONS.items():
            with account.connect() as socket, suppress(ConnectionClosed):
                assert socket.response is not None
                request_id = socket.response.headers["x-request-id"]
                socket.send(sent if isinstance(sent, str) else json.dumps(sent))
                while True:
                    socket.recv(60)
            line = {"code": code, "reason": reason, "param": param, "route": "stream"}
            yield Found(f"session: {name}", request_id, mine | line | {"status": 101})
        with pytest.raises(InvalidStatus) as refused, account.connect(headers={}):
            pass
        request_id = refused.value.response.headers["x-request-id"]
        whose = {"status": 401, "reason": "invalid-credential", "route": "stream"}
        yield Found("no key for a session", request_id, whose)
        for method, path, route, reason in (
            ("POST", "/v1/voices", "voices", "invalid-field"),
            ("DELETE", f"/v1/voices/{SECRET}", "pages", "clone-not-found"),
            ("POST", "/v1/pronunciations", "pages", "invalid-field"),
            ("DELETE", f"/v1/pronunciations/{SECRET}", "pages", "pronunciation-not-found"),
        ):
            body, status = ({"name": SECRET}, 400) if method == "POST" else (None, 404)
            answer = account.request(method, path, json=body)
            line = {"status": status, "route": route, "reason": reason}
            yield self.found(f"{method} {path}", answer, **mine, **line)
        for _ in range(60):
            if (answer := account.speak("a")).status_code == 429:
                break
        line = {"status": 429, "code": "quota_error", "reason": "requests_per_minute"}
        yield self.found("429 of speech", answer, **mine, **line)


def lines_of(written: str, request_id: str) -> tuple[list[dict[str, Any]], str]:
    """What one ``grep`` finds: the lines of the request log, and the other lines."""
    found = [line for line in written.splitlines() if request_id in line]
    logged = [json.loads(line) for line in found if line.startswith("{")]
    return logged, "\n".join(line for line in found if not line.startswith("{"))


def problems(found: Found, written: str) -> str:
    logged, said = lines_of(written, found.request_id)
    if len(logged) != 1:
        return f"{len(logged)} lines"
    wrong = {
        name: logged[0].get(name) for name in found.line if logged[0].get(name) != found.line[name]
    }
    if wrong:
        return f"the line has {wrong}, not { ({name: found.line[name] for name in wrong}) }"
    return "" if found.said in said else f"standard error has {said!r}, not {found.said!r}"


def test_one_grep_for_its_id_says_whose_a_failed_request_was_and_why(
    start_gateway: Callable[..., Gateway], speech_server: SpeechServer
) -> None:
    redis = {"REDIS_URL": os.environ["SVC_TEST_REDIS_URL"], "SVC_WORKERS": "2"}
    short = {"SVC_BACKEND_QUEUE_SECONDS": "2", "SVC_DRAIN_SECONDS": "1"}
    gateway = start_gateway(SVC_REQUEST_LOG="true", **redis, **IMPATIENT, **short)
    walk = Walk(gateway, speech_server)
    all_found = list(walk.all())
    with RawClient(gateway) as cut:
        cut.chat("[[sim tokens=2000 pace=20]]", stream=True)
        cut.read_until(2, b"data: ")
        gateway.command.process.terminate()
        cut.rest()
        line = {"status": 200, "code": "server_shutting_down", "outcome": "interrupted"}
        all_found.append(Found("a drain's end", cut.request_id, walk.mine | line))
    gateway.command.process.wait(60)

    written = gateway.command.log.read_text()
    wrong = {found.name: why for found in all_found if (why := problems(found, written))}
    assert not wrong, json.dumps(wrong, indent=1)
    assert not [line for line in written.splitlines() if any(each in line for each in walk.secrets)]
    assert without_trace(all_found) == []


def without_trace(all_found: list[Found]) -> list[str]:
    """The requests of a known key that neither the ledger has, nor the list of refused requests."""
    ids = [each.request_id for each in all_found]
    kept = {
        request_id
        for table in (Refusal, UsageRow, SpeechRow)
        for request_id in table.objects.filter(request_id__in=ids).values_list(
            "request_id", flat=True
        )
    }
    metered = [each for each in all_found if each.line.get("organization_id")]
    return [
        each.name
        for each in metered
        if each.request_id not in kept and each.line.get("route") != "pages"
    ]
