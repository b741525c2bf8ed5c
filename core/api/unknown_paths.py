"""The 404 for unknown paths, with advice on what to set in the client instead.

SDKs request some of these paths by default (docs/connect-defaults.md). The message repeats only
paths listed in this file, never text that a caller chose.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from core.errors import NotFound

_CHAT: Final = "Set the client to chat completions."
_ABSENT: Final = {
    "/v1/responses": _CHAT,
    "/v1/completions": _CHAT,
    "/v1/embeddings": "Use another service for embeddings.",
    "/v1/assistants": _CHAT,
    "/v1/threads": _CHAT,
    "/v1/files": "Send texts in 'messages'.",
    "/v1/batches": "Send the requests one by one.",
    "/v1/images/generations": "Use another service for images.",
    "/v1/fine_tuning/jobs": "Use another service for fine-tuning.",
    "/v1/moderations": "Use another service for moderation.",
}
"""Endpoints of the convention that neither surface has, and what a client can do instead."""
_INFERENCE: Final = frozenset(
    {"/v1/chat/completions", "/v1/models", "/v1/usage", "/v1/usage/export"}
)
_SPEECH: Final = frozenset(
    {
        "/v1/audio/speech",
        "/v1/audio/speech/stream",
        "/v1/audio/voices",
        "/v1/audio/models",
        "/v1/voices",
        "/v1/models",
    }
)
_KNOWN: Final = _INFERENCE | _SPEECH | frozenset(_ABSENT)


def unknown_path(path: str, *, on_speech: bool) -> NotFound:
    """The 404 for ``path`` on the speech surface or on the other one."""
    if on_speech:
        served = "POST /v1/audio/speech, GET /v1/models and POST /v1/voices"
    else:
        served = "POST /v1/chat/completions, GET /v1/models and GET /v1/usage"
    advice = _advice("/" + path.strip("/"), on_speech)
    return NotFound(f"{advice or NotFound.default_message} This address has {served}.")


def _advice(path: str, on_speech: bool) -> str | None:
    if path in _ABSENT:
        return f"{path} does not exist here. {_ABSENT[path]}"
    here, there = (_SPEECH, _INFERENCE) if on_speech else (_INFERENCE, _SPEECH)
    if path in here:
        return f"The path is {path}, without a slash at its end."
    if path in there:
        return f"{path} is at the other address of this service: {_other(on_speech)}."
    if f"/v1{path}" in _KNOWN:
        return "The base URL of this service ends in /v1; set it in the client."
    # A base URL that already has an endpoint, or /v1 twice.
    if any(path.endswith(known.removeprefix("/v1")) for known in _KNOWN) and path.startswith("/v1"):
        return "The base URL of this service ends in /v1, once and with nothing after it."
    return None


def _other(on_speech: bool) -> str:
    """Describe the address of the other surface, as far as this process knows it."""
    if on_speech:
        return "the one for chat, port 8000 unless the operator chose another"
    return f"the one for speech, port {settings.SVC_SPEECH_PORT} where it is reached directly"
