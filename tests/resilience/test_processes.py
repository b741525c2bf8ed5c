"""What counts as a file on a disk, and that no body is one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.resilience.measuring.processes import bytes_on_disk
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.metrics import metrics
from tests.support.speech.accounts import speech_account
from tests.support.until import until

_SIZE = 900_000


def _without_a_name(path: Path) -> int:
    """A file that was deleted while it is open, as temporary files are."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, b"x" * _SIZE)
    path.unlink()
    return file


def _in_memory(path: Path) -> int:
    file = os.memfd_create(path.name)
    os.write(file, b"x" * _SIZE)
    return file


@pytest.mark.parametrize(("opened", "size"), [(_without_a_name, _SIZE), (_in_memory, 0)])
def test_a_deleted_file_counts_and_a_file_in_memory_does_not(
    opened: Callable[[Path], int], size: int, tmp_path: Path
) -> None:
    before = bytes_on_disk(os.getpid())
    file = opened(tmp_path / "body")
    try:
        assert bytes_on_disk(os.getpid()) - before == size
    finally:
        os.close(file)


def _begun(gateway: Gateway, port: int, path: str, key: str) -> RawClient:
    """A client that has sent a body up to its last byte."""
    client = RawClient(gateway, port)
    body = json.dumps({"padding": "x" * _SIZE}).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        f"authorization: Bearer {key}",
        f"content-length: {len(body)}",
    ]
    client.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body[:-1])
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
