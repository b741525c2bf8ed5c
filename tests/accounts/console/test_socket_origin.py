"""The Origin that opens a WebSocket of the console: that of the console's own pages, by http or https."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.console import session_lookups
from accounts.console.sessions import SessionEnded, StaleForm, sessions
from accounts.models import Scope

pytestmark = [pytest.mark.django_db(transaction=True)]


def scope(origin: str | None, scheme: str = "ws", **headers: str) -> dict[str, Any]:
    sent = {"host": "gateway.example:8443", "cookie": "sessionid=unknown", **headers}
    if origin is not None:
        sent["origin"] = origin
    return {
        "type": "websocket",
        "path": "/console/voices/stream",
        "scheme": scheme,
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "query_string": b"",
    }


@pytest.fixture(autouse=True)
def hosts(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["gateway.example"]


@pytest.fixture
def behind_tls(settings: Any) -> None:
    settings.SVC_HTTPS_ONLY = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


async def is_own(sent: dict[str, Any]) -> bool:
    """Whether the Origin is accepted; the session that comes next is unknown in any case."""
    try:
        await sessions.principal_of(sent, Scope.SPEECH)
    except StaleForm:
        return False
    except SessionEnded:
        return True
    finally:
        session_lookups.close()
    raise AssertionError("the session is unknown")


@pytest.mark.parametrize(
    ("origin", "scheme", "own"),
    [
        ("http://gateway.example:8443", "ws", True),
        ("https://gateway.example:8443", "wss", True),
        ("https://gateway.example:8443", "ws", False),
        ("http://gateway.example:8443", "wss", False),
        ("http://gateway.example", "ws", False),
        ("http://evil.example", "ws", False),
        ("http://gateway.example:8443.evil.example", "ws", False),
        ("null", "ws", False),
        ("", "ws", False),
        (None, "ws", False),
    ],
)
async def test_over_plain_http(origin: str | None, scheme: str, own: bool) -> None:
    assert await is_own(scope(origin, scheme)) is own


@pytest.mark.usefixtures("behind_tls")
@pytest.mark.parametrize("headers", [{}, {"x-forwarded-proto": "https"}])
async def test_behind_a_proxy_that_ends_tls(headers: dict[str, str]) -> None:
    assert await is_own(scope("https://gateway.example:8443", **headers))
    assert not await is_own(scope("http://gateway.example:8443", **headers))
