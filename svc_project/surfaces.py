"""Which of the two surfaces a request belongs to, decided once, at the door.

A request is for the speech surface when its Host is in ``SPEECH_HOSTS`` or when it arrived at the
speech port; everything else is the inference surface. The same path (``GET /v1/models``) means
two things on the two addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http.request import split_domain_port, validate_host

from speech.errors import speech_error_body
from svc_project.lib import metrics
from svc_project.lib.errors import ApiError, BadRequest, error_body
from svc_project.lib.http import JSON_TYPE
from svc_project.lib.ids import request_id
from svc_project.lib.unknown_paths import unknown_path
from svc_project.lib.websocket import deny

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


log = logging.getLogger(__name__)

_MOST_LOGGED_HOSTS = 20
_refused_hosts: set[str] = set()


class Surface(StrEnum):
    INFERENCE = "inference"
    SPEECH = "speech"


def surface_of(scope: Mapping[str, Any]) -> Surface:
    """The surface that an ASGI scope is for."""
    server = scope.get("server")
    if server is not None and server[1] == settings.SVC_SPEECH_PORT:
        return Surface.SPEECH
    if settings.SPEECH_HOSTS and _host(scope) in settings.SPEECH_HOSTS:
        return Surface.SPEECH
    return Surface.INFERENCE


def error_body_of(surface: Surface, error: ApiError) -> bytes:
    """``error`` in the shape that ``surface`` gives all of its errors."""
    return speech_error_body(error) if surface is Surface.SPEECH else error_body(error)


class SurfaceRouter:
    """Sends a request to the consumer of its path, or to Django with ``scope["surface"]`` set.

    ``consumers`` and ``sockets``: for each surface, exact paths and who answers HTTP and WebSocket
    there. Django knows no WebSocket: on any other path one is refused. A slash at the end of an API
    path is forgiven: a redirect would lose the body of a POST. ``probes``: paths of the
    inference surface that are answered whatever the Host says, since whoever watches a server
    often knows it by its address only.
    """

    def __init__(
        self,
        consumers: Mapping[Surface, Mapping[str, Application]],
        sockets: Mapping[Surface, Mapping[str, Application]],
        django: ASGIHandler,
        probes: Mapping[str, Application],
    ) -> None:
        self.consumers = consumers
        self.sockets = sockets
        self._probes = probes
        self._django = django

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        surface = surface_of(scope)
        scope = _without_last_slash(scope)
        if scope["type"] == "websocket":
            await self._open_socket(surface, scope, receive, send)
            return
        consumer = self.consumers[surface].get(scope["path"])
        if surface is Surface.INFERENCE and scope["path"] in self._probes and consumer is None:
            await self._probes[scope["path"]](scope, receive, send)
        elif not _serves_host(scope):
            await _refuse_host(surface, _counted(surface, send))
        elif consumer is not None:
            await consumer(scope, receive, send)
        else:
            if surface is Surface.SPEECH:
                receive = _without_body(receive)
            await self._django({**scope, "surface": surface}, receive, _counted(surface, send))  # type: ignore[arg-type]  # its messages are Mappings, ours dicts

    async def _open_socket(
        self, surface: Surface, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        consumer = self.sockets.get(surface, {}).get(scope["path"])
        allowed = _serves_host(scope)
        if consumer is not None and allowed:
            await consumer(scope, receive, send)
            return
        await receive()  # websocket.connect
        on_speech = surface is Surface.SPEECH
        error = unknown_path(scope["path"], on_speech=on_speech) if allowed else _unknown_host()
        await deny(scope, send, error, request_id(), error_body_of(surface, error))


def _without_last_slash(scope: dict[str, Any]) -> dict[str, Any]:
    path: str = scope["path"]
    if path.startswith("/v1/") and path.endswith("/"):
        return {**scope, "path": path[:-1]}
    return scope


def _counted(surface: Surface, send: Send) -> Send:
    async def send_counted(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            metrics.requests.add(surface, "pages", str(message["status"]), "")
        await send(message)

    return send_counted


def _host(scope: Mapping[str, Any]) -> str:
    for name, value in scope["headers"]:
        if name == b"host":
            return _domain(value)
    return ""


@lru_cache(maxsize=1024)
def _domain(host: bytes) -> str:
    return split_domain_port(host.decode("latin-1"))[0]


@lru_cache(maxsize=1024)
def _is_allowed(domain: str) -> bool:
    """Django's own rule, so that consumers and views refuse the same hosts."""
    if not settings.ALLOWED_HOSTS and settings.DEBUG:
        return validate_host(domain, [".localhost", "127.0.0.1", "[::1]"])
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _serves_host(scope: Mapping[str, Any]) -> bool:
    """Whether the request's Host is served. The first hosts that are not are named in the log.

    They are the first mistake of a deployment; the rest are scanners, who could fill it.
    """
    domain = _host(scope)
    if _is_allowed(domain):
        return True
    if domain not in _refused_hosts and len(_refused_hosts) < _MOST_LOGGED_HOSTS:
        _refused_hosts.add(domain)
        log.warning("Host %r is not in ALLOWED_HOSTS: its requests are answered 400", domain[:100])
    return False


def _without_body(receive: Receive) -> Receive:
    """An empty body and then what else comes; the real one is dropped as it comes.

    No view of the speech surface takes a body, and Django would store one of any size before it
    asks who is calling.
    """
    begun = False

    async def bodyless() -> dict[str, Any]:
        nonlocal begun
        if not begun:
            begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return bodyless


async def _refuse_host(surface: Surface, send: Send) -> None:
    error = _unknown_host()
    headers = [(b"x-request-id", request_id().encode()), JSON_TYPE]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": error_body_of(surface, error)})


def _unknown_host() -> ApiError:
    return BadRequest("This Host is not served here. The operator lists hosts in ALLOWED_HOSTS.")
