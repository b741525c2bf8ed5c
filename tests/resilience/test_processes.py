"""Bodies that are being read are not stored on a disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.resilience.measuring.processes import bytes_on_disk
from tests.resilience.wire import head
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.metrics import metrics
from tests.support.speech.accounts import speech_account
from tests.support.until import until

_SIZE = 900_000


def _begun(gateway: Gateway, port: int, path: str, key: str) -> RawClient:
    """A client that has sent a body up to its last byte."""
    client = RawClient(gateway, port)
    body = json.dumps({"padding": "x" * _SIZE}).encode()
    length = {"content-length": str(len(body))}
    client.send(head("POST", path, key=key, headers=length) + body[:-1])
    return client


def test_bodies_that_are_being_read_are_no_files(
    start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    gateway = start_gateway(TMPDIR=str(temporary))
    speech = speech_account(gateway)

    def files() -> set[str]:
        # Copies of the speech engine's data have names of their own.
        return {path.name for path in temporary.iterdir() if not path.name.startswith("svc-")}

    with ExitStack() as stack:
        clients = [
            stack.enter_context(_begun(gateway, port, path, key))
            for port, path, key in (
                (gateway.port, "/v1/chat/completions", gateway.key),
                (gateway.speech_port, "/v1/voices", speech.key),
            )
        ]

        until(lambda: metrics(gateway).sum("svc_body_bytes") >= 2 * _SIZE)
        assert (bytes_on_disk(gateway.command.worker), files()) == (0, set())

        for client in clients:
            client.send(b"}")
            assert client.answer()[0] == 400
        assert (bytes_on_disk(gateway.command.worker), files()) == (0, set())
