"""Requests for the catalog, usage and the export, and the whole speech surface."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from benchmarks.answers.cases import Case, get, speech

PERIOD = "start=2026-01-01&end=2026-01-20"
USAGE_QUERIES = (
    *("", "?group_by=model,api_key,time&bucket=hour", "?group_by=time", "?group_by=colour"),
    *("?bucket=week", "?start=yesterday", f"?{PERIOD}", "?start=2026-02-01&end=2026-01-01"),
    *("?start=2025-01-01&end=2026-01-01", "?model=acme/demo-8b", "?model=acme/unknown"),
    *("?api_key_id=x", "?api_key_id=00000000-0000-0000-0000-000000000000", "?unknown=1"),
    "?start=2026-01-01&start=2026-01-02",
)
EXPORT_QUERIES = (
    *("?limit=1000", "?limit=3", "?limit=0", "?limit=x", "?format=csv", "?format=xml"),
    *("?cursor=x", "?format=csv&cursor=x", f"?{PERIOD}", f"?format=csv&{PERIOD}"),
    *(
        "?start=2026-02-01&end=2026-01-01",
        "?start=2025-01-01&end=2026-01-01",
        "?model=acme/demo-8b",
    ),
)
UNKNOWN = ("/", "/v1", "/v2/models", "/chat/completions", "/v1/v1/models", "/v1/embeddings",
           "/v1/completions", "/v1/responses", "/nothing")  # fmt: skip

FIELDS: dict[str, list[Any]] = {
    "voice": [None, 5, "", "nobody", {"id": "ava"}, {"id": 5}, "asha"],
    "input": [None, 5, "", "  ", "x" * 4097, "[pause 9s]", "[pause]", "[laughs]", "!?"],
    "response_format": ["mp3", "pcm", "opus", "flac", "aac", 5, None],
    "speed": [0.1, 5, "1", True, 0.25, 4, None],
    "instructions": [5, "y" * 4097, "Calmly.", None],
    "stream_format": ["sse", "audio", "x", 5, None],
    "model": [5, None, "tts-1"],
}
REMOTE_FAULTS = (
    *("status@400", "status@401", "status@404", "status@429", "status@500", "status@503"),
    *("redirect", "html", "json", "empty", "cut", "cut@100", "reset@100", "unframed"),
    *("silence", "short", "garbage", "odd", "compressed"),
)


def catalog_cases() -> Iterator[Case]:
    for key in ("inference", "read", "speech", "revoked", None):
        yield get("inference", "/v1/models", key)
    for model in ("acme/demo-8b", "acme%2Fdemo-8b", "acme/unknown", "acme/draft", "acme/old-8b"):
        yield get("inference", f"/v1/models/{model}", "read")
    for path in ("/v1/models", "/v1/models/acme/demo-8b", "/v1/usage", "/v1/usage/export"):
        for method in ("POST", "DELETE", "HEAD", "OPTIONS"):
            yield get("inference", path, "read", method)
    for path in (*UNKNOWN, "/livez", "/openapi.json"):
        yield get("inference", path, "inference")
        yield get("inference", path, None, "POST")


def usage_cases() -> Iterator[Case]:
    for key in (None, "speech", "revoked", "inference"):
        yield get("inference", "/v1/usage", key)
        yield get("inference", "/v1/usage/export", key)
    for query in USAGE_QUERIES:
        yield get("inference", f"/v1/usage{query}", "read")
    for query in EXPORT_QUERIES:
        yield get("inference", f"/v1/usage/export{query}", "read")


def speech_cases() -> Iterator[Case]:
    said = {"voice": "ava", "input": "Hello there. [pause] How are you?"}
    yield speech("spoken", said)
    yield speech("with a slash", said, path="/v1/audio/speech/")
    for key in (None, "inference", "read", "revoked", "unknown"):
        yield speech(f"key: {key}", said, key)
    for name, raw in {"empty": b"", "not JSON": b"{", "array": b"[]", "no UTF-8": b"\xff"}.items():
        yield speech(f"body: {name}", raw)
    yield speech("body: too large", {**said, "model": "x" * 140_000})
    for field, values in FIELDS.items():
        for number, value in enumerate(values):
            yield speech(f"field: {field} {number}", {**said, field: value})
    yield speech("pcm events", {**said, "response_format": "pcm", "stream_format": "sse"})
    yield speech("a Hindi voice on the plan", {**said, "voice": "asha"}, "speech_enterprise")
    for voice in ("remote-file", "remote-pcm", "remote-sse"):
        yield speech(f"{voice}", {**said, "voice": voice})
        for fault in REMOTE_FAULTS:
            body = {"voice": voice, "input": f"[[sim fault={fault}]] Hello."}
            yield speech(f"{voice}: {fault}", body)
    for number in range(3):
        yield speech(f"limits: {number}", said, "speech_limited")
    yield speech("characters", said, "speech_few_characters")
    yield from _speech_paths()
    yield from _pronunciation_cases()


def _speech_paths() -> Iterator[Case]:
    for path in ("/v1/models", "/v1/models/ava", "/v1/models/nobody", "/v1/audio/voices"):
        for key in ("speech", "inference", None):
            yield get("speech", path, key)
    for path in ("/v1/audio/models", "/v1/models/", "/health", "/openapi.json", *UNKNOWN):
        yield get("speech", path, "speech")
    for path in ("/v1/audio/speech", "/v1/audio/speech/stream", "/v1/voices", "/v1/voices/x"):
        for method in ("GET", "PUT", "OPTIONS", "HEAD"):
            yield get("speech", path, "speech", method)
    yield get("speech", "/v1/models", "speech", "POST")


def _pronunciation_cases() -> Iterator[Case]:
    path = "/v1/pronunciations"
    said = {"word": "nginx", "pronunciation": "engine x"}
    bodies: dict[str, Any] = {"put": said, "put again": {**said, "word": "NGINX"}, "not JSON": b"{"}
    fields: dict[str, list[Any]] = {
        "word": [None, "", "x" * 101, "a\x00b", 5],
        "pronunciation": [None, " . "],
        "alphabet": ["arpabet", "ipa", None],
        "language": ["fr", "hi"],
        "case_sensitive": [1, True],
    }
    for field, values in fields.items():
        bodies |= {f"{field} {at}": {**said, field: value} for at, value in enumerate(values)}
    for name, body in bodies.items():
        yield speech(f"pronunciation: {name}", body, path=path)
    yield speech("pronunciation: without a key", said, None, path)
    yield get("speech", path, "speech_enterprise")
    yield get("speech", f"{path}/nobody", "speech", "DELETE")


def clone_cases(clip: bytes) -> Iterator[Case]:
    """Requests that create clones; ``clip`` is a WAV file of the right length."""
    audio = base64.b64encode(clip).decode()
    made = {"name": "Anna", "audio_b64": audio, "consent": True}

    def create(name: str, body: Any, key: str | None = "speech") -> Case:
        return speech(f"clone: {name}", body, key, "/v1/voices")

    yield create("without a key", made, None)
    yield create("not JSON", b"{")
    fields: dict[str, list[Any]] = {
        "name": [None, "", "x" * 41, "a\nb", 5, "ava"],
        "audio_b64": [None, 5, "", "!", "aGVsbG8=", audio[:400]],
        "consent": [None, False, "true"],
    }
    for field, values in fields.items():
        for number, value in enumerate(values):
            yield create(f"{field} {number}", {**made, field: value})
    yield create("created", made)
    yield create("the same name", made)
    yield create(
        "as a data URL", {**made, "name": "B", "audio_b64": "data:audio/wav;base64," + audio}
    )
    yield get("speech", "/v1/audio/voices?with=clones", "speech")
    yield get("speech", "/v1/models?with=clones", "speech")
    yield get("speech", "/v1/voices/nobody", "speech", "DELETE")
    yield get("speech", "/v1/voices/nobody", None, "DELETE")
    yield get("speech", "/v1/voices/ava", "speech", "DELETE")
