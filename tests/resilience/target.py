"""The description of a gateway for the programs of the suite."""

from __future__ import annotations

from pathlib import Path

import msgspec

HOST = "127.0.0.1"


class Tenant(msgspec.Struct, frozen=True):
    """The credentials of one organization."""

    inference: str
    read: str
    speech: str
    spent: str
    """An inference key that may send one request a minute."""
    session: str
    """The ``sessionid`` cookie of a member who is logged in to the console."""
    organization: str
    """Its name in the addresses of the console."""
    new_keys: tuple[str, ...] = ()
    """Unused inference keys, of any organization."""


class Target(msgspec.Struct, frozen=True):
    """A gateway's two ports, and the tenant of the program."""

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
