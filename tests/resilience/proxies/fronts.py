"""The proxies of the tests, by name, set up as docs/operate/proxies.md says, or carelessly."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.live import ROOT
from tests.support.servers.envoy import running_envoy
from tests.support.servers.haproxy import running_haproxy
from tests.support.servers.nginx import running_nginx

PAGE = ROOT / "docs/operate/proxies.md"
_ONLY_WEBSOCKET = '{ websocket websocket; default ""; }'
_ANYTHING = "{ default $http_upgrade; }"

Start = Callable[[Path, int], AbstractContextManager[int]]


def _configuration() -> str:
    """The configuration of nginx on the page for operators."""
    [found] = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def _nginx(upgrades: str = _ONLY_WEBSOCKET, buffering: str = "") -> Start:
    """nginx as on the page, with one kept connection; ``upgrades``: its map of ``Upgrade``."""

    def start(directory: Path, behind: int) -> AbstractContextManager[int]:
        http = _configuration()
        for written, used in (
            (_ONLY_WEBSOCKET, upgrades),
            ("# listen, server_name, certificates", f"listen 127.0.0.1:PORT; {buffering}"),
            ("server 127.0.0.1:8000; keepalive 32;", f"server 127.0.0.1:{behind}; keepalive 1;"),
        ):
            assert http.count(written) == 1, written
            http = http.replace(written, used)
        return running_nginx(directory, http)

    return start


@dataclass(frozen=True, slots=True)
class Front:
    """A proxy; ``start`` runs it in a directory, before the gateway's port, and gives its own."""

    name: str
    start: Start
    refuses: frozenset[int] = frozenset()
    """Statuses with which it refuses upgrades and tunnels itself: the gateway never sees them."""
    keeps_frames_back: bool = False
    """Whether it takes the body of a request for a WebSocket for frames, and sends none of it before
    the upgrade is accepted. The gateway waits for the body then, or does not see that there is one.
    """

    def __str__(self) -> str:
        return self.name


FRONTS = (
    Front("nginx", _nginx(_ANYTHING), frozenset({400, 405})),
    Front(
        "nginx-unbuffered",
        _nginx(_ANYTHING, "proxy_request_buffering off;"),
        frozenset({400, 405}),
    ),
    Front("nginx-websocket-only", _nginx(), frozenset({400, 405})),
    Front("haproxy", running_haproxy, frozenset({400})),
    Front("envoy", running_envoy, frozenset({400, 403, 404, 501}), keeps_frames_back=True),
)
"""The first two pass any ``Upgrade`` on, the third only that of a WebSocket. HAProxy drops it from a
request with a body, and passes ``CONNECT`` on; Envoy refuses all but ``websocket``, and ignores ``h2c``.
"""
IN_EVERY_LANE = ("nginx", "haproxy")
CASES = [
    pytest.param(front, marks=() if front.name in IN_EVERY_LANE else pytest.mark.long)
    for front in FRONTS
]
