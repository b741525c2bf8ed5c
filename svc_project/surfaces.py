"""Decides once which of the two surfaces a request belongs to, and routes it.

A request is for the speech surface when its Host is in ``SPEECH_HOSTS`` or when it arrived at the
speech port; every other request is for the inference surface. The same path (``GET /v1/models``)
has a different meaning on each.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from core.api.unknown_paths import unknown_path
from core.asgi.http import JSON_TYPE
from core.asgi.websocket import UpgradeRequired, deny
from core.errors import ApiError, BadRequest, MethodNotAllowed, error_body
from core.ids import request_id
from core.monitoring import current_request, metrics, observation
from speech.errors import speech_error_body

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


log = logging.getLogger(__name__)

_MOST_LOGGED_HOSTS = 20
_refused_hosts: set[str] = set()


class UnknownHost(BadRequest):
    default_message = "This Host is not served here. The operator lists hosts in ALLOWED_HOSTS."
    cause = "The Host header is not one of this gateway's."
    cure = "Use the address that the operators gave you. Operators: ALLOWED_HOSTS lists them."


class DisguisedPath(BadRequest):
    default_message = "Write the first part of the path without percent escapes."
    cause = "The first part of the path has percent escapes."
    cure = "Write the path as it is documented."


class HttpsOnly(BadRequest):
    default_message = (
        "Use https: this address takes no requests over plain http. If a key was sent, others may "
        "have read it: replace it."
    )
    cause = "The request came over plain http."
    cure = "Use https, and replace the key: others may have read it."


class Surface(StrEnum):
    INFERENCE = "inference"
    SPEECH = "speech"


def surface_of(scope: Mapping[str, Any]) -> Surface:
    """The surface of an ASGI scope."""
    server = scope.get("server")
    if server is not None and server[1] == settings.SVC_SPEECH_PORT:
        return Surface.SPEECH
    if settings.SPEECH_HOSTS and host_of(scope) in settings.SPEECH_HOSTS:
        return Surface.SPEECH
    return Surface.INFERENCE


def error_body_of(surface: Surface, error: ApiError) -> bytes:
    """Render ``error`` as the error body of ``surface``."""
    return speech_error_body(error) if surface is Surface.SPEECH else error_body(error)


class SurfaceRouter:
    """Sends a request to the consumer of its path, or to Django with ``scope["surface"]`` set.

    ``consumers`` and ``sockets`` map, for each surface, exact paths to consumers of HTTP and of
    WebSockets. Django has no WebSockets: on any other path one is refused. A slash at the end of an
    API path is ignored: a redirect would lose the body of a POST. ``probes``: paths of the
    inference surface that are answered for any Host, since monitoring often knows a server only by
    its address.
    """

    def __init__(
        self,
        consumers: Mapping[Surface, Mapping[str, Application]],
        sockets: Mapping[Surface, Mapping[str, Application]],
        django: Application,
        probes: Mapping[str, Application],
    ) -> None:
        self.consumers = consumers
        self.sockets = sockets
        self._probes = probes
        self._django = django

    def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> Awaitable[None]:
        """Return the coroutine that answers."""
        surface = surface_of(scope)
        path = _without_last_slash(scope["path"])
        if path != scope["path"]:
            scope = {**scope, "path": path}
        if scope["type"] == "websocket":
            return self._open_socket(surface, scope, receive, send)
        consumer = self.consumers[surface].get(path)
        if consumer is None and surface is Surface.INFERENCE and not _is_disguised(scope):
            consumer = self._probes.get(path)
            if consumer is not None:
                return consumer(scope, receive, send)
        if (error := _refusal(scope, is_api=consumer is not None)) is not None:
            return _refuse(surface, scope, error, _counted(surface, send))
        if consumer is not None:
            return consumer(scope, receive, send)
        if path in self.sockets.get(surface, {}):
            error = UpgradeRequired() if scope["method"] == "GET" else MethodNotAllowed("GET")
            return _refuse(surface, scope, error, _counted(surface, send))
        return self._django({**scope, "surface": surface}, receive, send)

    def has_socket(self, scope: Mapping[str, Any]) -> bool:
        """Whether there is a WebSocket at the path of ``scope``, on its surface."""
        return _without_last_slash(scope["path"]) in self.sockets.get(surface_of(scope), {})

    async def _open_socket(
        self, surface: Surface, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        consumer = self.sockets.get(surface, {}).get(scope["path"])
        error = _refusal(scope, is_api=True)
        if consumer is not None and error is None:
            await consumer(scope, receive, send)
            return
        await receive()  # websocket.connect
        if error is None:
            error = unknown_path(scope["path"], on_speech=surface is Surface.SPEECH)
        await deny(scope, send, error, _begin(scope, error), error_body_of(surface, error))


def _without_last_slash(path: str) -> str:
    return path[:-1] if path.startswith("/v1/") and path.endswith("/") else path


def _counted(surface: Surface, send: Send) -> Send:
    async def send_counted(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            metrics.requests.add(surface, "pages", str(message["status"]), "")
        await send(message)

    return send_counted


def host_of(scope: Mapping[str, Any]) -> str:
    """The name or address in the Host header, in lower case and without its port; empty for none."""
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


def _note_refused_host(domain: str) -> None:
    """Log the first refused hosts.

    The first ones are mistakes of a deployment; the rest are scanners, which could fill the log.
    """
    if domain not in _refused_hosts and len(_refused_hosts) < _MOST_LOGGED_HOSTS:
        _refused_hosts.add(domain)
        log.warning("Host %r is not in ALLOWED_HOSTS: its requests are answered 400", domain[:100])


def _refusal(scope: Mapping[str, Any], *, is_api: bool) -> ApiError | None:
    """Return the error for a request that is refused whatever its path; else ``None``.

    ``is_api``: a consumer answers its path.
    """
    if not _is_allowed(host_of(scope)):
        return UnknownHost()
    if _is_disguised(scope):
        return DisguisedPath()
    # Django redirects pages. A redirected client of the API would keep sending its key.
    is_api = is_api or scope["path"].startswith(("/v1/", "/manage/"))
    if settings.SVC_HTTPS_ONLY and is_api and not _came_by_https(scope):
        return HttpsOnly()
    return None


def _is_disguised(scope: Mapping[str, Any]) -> bool:
    """Whether the first part of the path has percent escapes, which no path needs.

    A proxy that blocks ``/admin`` compares the raw path and would let ``/%61dmin`` pass.
    """
    raw: bytes = scope.get("raw_path") or b""
    return b"%" in raw and b"%" in raw[1:].partition(b"/")[0]


def _came_by_https(scope: Mapping[str, Any]) -> bool:
    """Decide as ``HttpsOnlyMiddleware`` and Django do: yes, unless the proxy says otherwise."""
    for name, value in scope["headers"]:
        if name == b"x-forwarded-proto":
            first: bytes = value.partition(b",")[0]
            return first.strip() == b"https"
    return True


def _begin(scope: Mapping[str, Any], error: ApiError) -> str:
    """Return the id of a request that is refused with ``error``, and log why where it helps."""
    refused_id = request_id()
    current_request.begin(refused_id)
    if isinstance(error, UnknownHost):
        _note_refused_host(host_of(scope))
    observation.refused(refused_id, scope, surface_of(scope), "refused", error)
    return refused_id


async def _refuse(surface: Surface, scope: Mapping[str, Any], error: ApiError, send: Send) -> None:
    body = error_body_of(surface, error)
    headers = [
        (b"x-request-id", _begin(scope, error).encode()),
        (b"content-length", str(len(body)).encode()),
        JSON_TYPE,
        *((name.encode(), value.encode()) for name, value in error.headers.items()),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
