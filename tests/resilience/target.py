"""What a program of the suite is told about the gateway that it visits."""

from __future__ import annotations

from pathlib import Path

import msgspec

HOST = "127.0.0.1"


class Tenant(msgspec.Struct, frozen=True):
    """What opens something of one organization."""

    inference: str
    read: str
    speech: str
    spent: str
    """An inference key that may send one request a minute."""
    session: str
    """The ``sessionid`` cookie of a member who is logged in to the console."""
    new_keys: tuple[str, ...] = ()
    """Inference keys that nobody has used yet; of whom does not matter."""


class Target(msgspec.Struct, frozen=True):
    """A gateway's two ports, and who visits it."""

    port: int
    speech_port: int
    tenant: Tenant
    model: str = "acme/demo-8b"
    voice: str = "ava"


def save(target: Target, path: Path) -> None:
    """Write ``target`` to a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.encode(target))


def load(path: str) -> Target:
    """Read what ``save`` wrote."""
    return msgspec.json.decode(Path(path).read_bytes(), type=Target)
