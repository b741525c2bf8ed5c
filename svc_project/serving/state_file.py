"""What ``serve``'s parent says of itself in the data directory, for ``reload``.

The parent holds a lock on the file as long as it runs, so a file that a killed one left behind is not
taken for a gateway.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

NAME: Final = "serve.json"
_BYTES: Final = 2048
"""The size of the file, whatever it says, so that one write replaces it."""
_LONGEST_FAILURE: Final = 500
_LOCK_SECONDS: Final = 1.0
"""How long another process may look at the file."""


@dataclass(frozen=True)
class State:
    """``generation`` counts starts and reloads from 1; ``reloading`` while the next one starts.

    ``failure``: why the last reload failed, empty if it did not. ``takes_reloads``: whether SIGHUP reloads.
    """

    pid: int
    generation: int
    reloading: bool = False
    failure: str = ""
    takes_reloads: bool = True


class StateFile:
    """The parent's side. Raises ``OSError`` when the file cannot be made or another parent holds it."""

    def __init__(self, path: str, descriptor: int | None = None) -> None:
        self.path = path
        self.descriptor = (
            os.open(path, os.O_RDWR | os.O_CREAT, 0o600) if descriptor is None else descriptor
        )
        os.set_inheritable(self.descriptor, False)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > deadline:
                    os.close(self.descriptor)
                    raise
            time.sleep(_LOCK_SECONDS / 20)

    def write(self, state: State) -> None:
        """Raises ``OSError``, as when the disk is full."""
        said = {**asdict(state), "failure": state.failure[:_LONGEST_FAILURE]}
        if state.takes_reloads:
            del said["takes_reloads"]  # Release 0.5 does not know it.
        os.pwrite(self.descriptor, json.dumps(said).encode().ljust(_BYTES), 0)


def read(directory: Path) -> State | None:
    """The state of the gateway that runs on ``directory``; None where none runs."""
    try:
        descriptor = os.open(directory / NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return State(**json.loads(os.pread(descriptor, _BYTES, 0)))
        return None
    finally:
        os.close(descriptor)
