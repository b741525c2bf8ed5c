"""Workers tell each other of the prompts that they send, so that each knows what is warm where.

Each adds the marks of what it sent to one stream in Redis, twenty times a second at most, and reads what the
others added. A conversation's next turn comes after its answer, which takes longer than that. What a server
has to do is not told: that changes faster, and workers that were told it chased each other
(docs/measurements/placement.md). The stream is encrypted: a mark is a checksum of a prompt's beginning, and
whoever could write marks could send an organization's prompts where they are cold.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from django.utils.crypto import salted_hmac

from core.limits.store import ScriptStore
from core.monitoring.logs import Outages
from core.sealing import Cipher, Unreadable
from inference.backends.prompts import Prompt

log = logging.getLogger(__name__)

_SECONDS: Final = 0.05
"""How often marks are told and heard."""
_IDLE_SECONDS: Final = 1.0
"""The same while this worker places no prompt."""
_IDLE_AFTER: Final = 5.0
_AWAY_SECONDS: Final = 1.0
"""How often a store that does not answer is tried."""
_MOST_TOLD: Final = 1024
"""Prompts in a batch; of more, and of those that a store that was away did not get, the newest."""
_BATCHES_KEPT: Final = 2000
_BATCHES_READ: Final = 200
_KEPT_SECONDS: Final = 300
"""What is older is not read by a new worker: the servers have most likely lost it."""

_SCRIPT: Final = Path(__file__).with_name("marks.lua").read_text(encoding="utf-8")
_KEY_SALT: Final = "inference.backends.shared_marks"


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A prompt that a worker sent to a backend."""

    organization_id: str
    backend_id: str
    size: int
    """Bytes."""
    marks: tuple[int, ...]


class Marks(Protocol):
    """Tells other workers of prompts."""

    def tell(self, prompt: Prompt, backend_id: str) -> None:
        """Tell them that ``prompt`` was sent to that backend."""


class Listener(Protocol):
    """What becomes of what other workers tell."""

    def heard(self, told: Told) -> None:
        """Note where another worker sent a prompt."""

    def hears(self, *, others: bool) -> None:
        """Note whether other workers are heard from now on."""


class SharedMarks:
    """The ``Marks`` of the workers that use the store at ``url``. Belongs to one event loop."""

    def __init__(self, url: str, *, prefix: str = "svc:", timeout_seconds: float = 0.25) -> None:
        self._store = ScriptStore(url, _SCRIPT, timeout_seconds)
        self._stream = prefix + "marks"
        self._name = uuid.uuid4().hex.encode()
        self._untold: deque[Told] = deque(maxlen=_MOST_TOLD)
        self._read = b""
        """The id of the last batch that was read; empty: what was told lately is read next."""
        self._told_at = -_IDLE_AFTER
        self._wakes = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._outages = Outages(log)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[Told]).decode

    def tell(self, prompt: Prompt, backend_id: str) -> None:
        self._untold.append(Told(prompt.organization_id, backend_id, prompt.size, prompt.marks))
        self._wakes.set()

    def start(self, listener: Listener) -> None:
        """Tell, and let ``listener`` hear, from now on."""
        self._task = asyncio.get_running_loop().create_task(self._share(listener))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._store.drop()

    async def _share(self, listener: Listener) -> None:
        key = salted_hmac(_KEY_SALT, "", algorithm="sha256").hexdigest()
        # Here and in a thread, since the first one loads a library.
        cipher = await asyncio.to_thread(Cipher, [key])
        while True:
            self._wakes.clear()
            if not await self._exchange(cipher, listener):
                await asyncio.sleep(_AWAY_SECONDS)
                continue
            await asyncio.sleep(_SECONDS)
            if time.monotonic() - self._told_at > _IDLE_AFTER and not self._untold:
                timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._wakes.set)
                await self._wakes.wait()
                timer.cancel()

    async def _exchange(self, cipher: Cipher, listener: Listener) -> bool:
        """Tell and hear once. Returns whether the store answered."""
        told = list(self._untold)
        self._untold.clear()
        batch = cipher.seal(self._encode(told)) if told else b""
        arguments = (self._read, self._name, batch, _BATCHES_KEPT, _BATCHES_READ, _KEPT_SECONDS)
        try:
            [answer] = await self._store.exchange(
                [("EVALSHA", self._store.digest, 1, self._stream, *arguments)]
            )
        except Exception as error:  # whatever the client raises, prompts go on being placed
            self._outages.failed(
                logging.WARNING,
                "the store of shared marks failed (%s); each worker knows only what it sent itself",
                type(error).__name__,
            )
            self._untold = deque([*told, *self._untold], maxlen=_MOST_TOLD)
            # The clock of a store that was restarted may be behind.
            self._read = b""
            listener.hears(others=False)
            return False
        self._outages.ended("the store of shared marks answers again")
        if told:
            self._told_at = time.monotonic()
        listener.hears(others=True)
        await self._hear(cipher, listener, answer)
        return True

    async def _hear(self, cipher: Cipher, listener: Listener, answer: Any) -> None:
        for self._read, fields in answer[0][1] if answer else ():
            try:
                name, batch = fields
                if name == self._name:
                    continue
                told = self._decode(cipher.open(batch))
            except (ValueError, Unreadable):
                continue  # of hosts with another secret or another release
            for each in told:
                listener.heard(each)
            # Many batches are read by a new worker, and requests do not wait for all of them.
            await asyncio.sleep(0)
