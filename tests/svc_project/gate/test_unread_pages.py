"""An unread page ends after a while, and frees its memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx2
import pytest

from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway
from tests.support.metrics import metrics
from tests.support.until import until

GatewayWith = Callable[..., Gateway]

FILE = "/static/admin/js/vendor/xregexp/xregexp.js"
FILE_BYTES = 325_171
SHORT = {"SVC_BODY_SECONDS": "1", "SVC_EXPORT_BYTES_PER_SECOND": "325171"}
"""A page of the file may be read for two seconds; a stalled client is only dropped after 30."""


def ask(client: RawClient, key: str | None) -> None:
    """Request the file, and read nothing of it."""
    lines = [f"GET {FILE} HTTP/1.1", "host: 127.0.0.1"]
    if key is not None:
        lines.append(f"authorization: Bearer {key}")
    client.send(("\r\n".join(lines) + "\r\n\r\n").encode())


def read(gateway: Gateway, key: str | None) -> httpx2.Response:
    # Compressed it would need a fifth of the room.
    headers = {"accept-encoding": "identity"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return httpx2.get(gateway.url + FILE, headers=headers, timeout=60, verify=NO_TLS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("caller", "share"), [("stranger", 4_000_000), ("known", 16_000_000)], ids=["stranger", "known"]
)
def test_unread_pages_end_and_release_their_memory(
    gateway_with: GatewayWith, caller: str, share: int
) -> None:
    gateway = gateway_with(**SHORT)
    assert gateway.chat("say: now the key is known").status_code == 200
    key = gateway.key if caller == "known" else None
    with contextlib.ExitStack() as stack:
        for _ in range(share // FILE_BYTES + 2):  # the last two have no room
            ask(stack.enter_context(RawClient(gateway, receive_buffer=2048)), key)
        until(lambda: read(gateway, key).status_code == 503)

        again = until(lambda: found if (found := read(gateway, key)).status_code == 200 else None)
        assert len(again.content) == FILE_BYTES
        # That of the metrics, and the two that were answered 503.
        until(lambda: metrics(gateway).sum("svc_connections") <= 3)


def test_a_larger_page_may_take_longer(gateway_with: GatewayWith) -> None:
    gateway = gateway_with(SVC_BODY_SECONDS="0.001", SVC_EXPORT_BYTES_PER_SECOND="16000")
    with RawClient(gateway, receive_buffer=2048) as client:
        ask(client, None)
        _, _, body = client.answer()
    assert len(body) == FILE_BYTES
