"""Gateway processes of the live database: the one of a test worker, and others beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.live import Command, Simulator, free_port


@dataclass
class Served:
    """The gateway process of this test worker."""

    command: Command
    port: int
    speech_port: int
    environment: dict[str, str]
    database_name: str
    simulator: Simulator


def launch(environment: dict[str, str], log: Path, *arguments: str) -> tuple[Command, int, int]:
    """Start ``manage.py serve``; return it and the ports of both surfaces, once it takes connections."""
    port, speech_port = free_port(), free_port()
    command = Command(
        ["serve", "--port", str(port), "--speech-port", str(speech_port), *arguments],
        environment,
        log,
    )
    try:
        command.wait_for(f"127.0.0.1:{port}")
    except BaseException:
        command.kill()
        raise
    return command, port, speech_port


@contextmanager
def another_gateway(served: Served, directory: Path, **environment: str) -> Iterator[Served]:
    """Start a gateway besides ``served`` for a whole module, on the same database."""
    settings_of_it = {**served.environment, "SVC_DATA_DIR": str(directory), **environment}
    command, port, speech_port = launch(settings_of_it, directory / "gateway.log")
    yield replace(
        served, command=command, port=port, speech_port=speech_port, environment=settings_of_it
    )
    command.kill()
