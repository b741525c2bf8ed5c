"""Takes connections so that all workers of a gateway have about as many.

The workers accept from the same sockets. The event loop's own server takes all that wait, so whichever
worker wakes first got a whole burst, and kept it: bounds of one worker were full while others idled.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import mmap
import socket
import struct
from collections.abc import Callable, Sized
from typing import Final

log = logging.getLogger(__name__)

_COUNT: Final = struct.Struct("=I")
_AHEAD: Final = 2
"""With so many more than the worker with the fewest, a worker leaves the next connection to others."""
_LEFT_SECONDS: Final = 0.002
"""How long it leaves it; a worker that hangs does not take it."""

_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FULL_SECONDS: Final = 1.0
"""How long a worker without a free descriptor waits: the listener stays readable, so it would spin."""


class Counts:
    """The open connections of each worker, in the file ``descriptor``, which they all map.

    ``own`` is this worker's place among ``workers``, from 0.
    """

    def __init__(self, descriptor: int, own: int, workers: int) -> None:
        self._memory = mmap.mmap(descriptor, 0)
        self._own = own * _COUNT.size
        self._others = [each * _COUNT.size for each in range(workers) if each != own]

    def is_ahead(self, own: int) -> bool:
        """Whether ``own``, the connections of this worker, are many more than those of another one."""
        _COUNT.pack_into(self._memory, self._own, own)
        least: int = min(_COUNT.unpack_from(self._memory, each)[0] for each in self._others)
        return own >= least + _AHEAD


class Acceptor:
    """Accepts on ``listener``, which it makes listen, until it is closed. ``connections`` are the open ones.

    Raises ``OSError`` when another process listens on the address.
    """

    def __init__(
        self,
        listener: socket.socket,
        backlog: int,
        protocol: Callable[[], asyncio.Protocol],
        connections: Sized,
        counts: Counts,
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._connections = connections
        self._counts = counts
        self._loop = asyncio.get_running_loop()
        self._begun: set[asyncio.Task[object]] = set()
        self._left: asyncio.TimerHandle | None = None
        self._is_full = False
        listener.setblocking(False)
        listener.listen(backlog)
        self._loop.add_reader(listener, self._accept_even)

    def _accept_even(self) -> None:
        while not self._counts.is_ahead(len(self._connections) + len(self._begun)):
            if not self._accept():
                return
        self._loop.remove_reader(self._listener)
        self._left = self._loop.call_later(_LEFT_SECONDS, self._accept_left)

    def _accept_left(self) -> None:
        self._left = None
        self._accept()
        if self._left is None:
            self._loop.add_reader(self._listener, self._accept_even)

    def _accept(self) -> bool:
        """Take a connection; False where none waits."""
        try:
            accepted, _ = self._listener.accept()
        except OSError as error:  # taken by another worker, or reset by its client
            if error.errno in _NO_ROOM:
                self._wait_for_room(error)
            return False
        self._is_full = False
        accepted.setblocking(False)
        begun = self._loop.create_task(self._begin(accepted))
        self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return True

    def _wait_for_room(self, error: OSError) -> None:
        if not self._is_full:
            log.error("this worker takes no connection: %s (LimitNOFILE)", error.strerror)
        self._is_full = True
        self._loop.remove_reader(self._listener)
        self._left = self._loop.call_later(_FULL_SECONDS, self._accept_left)

    async def _begin(self, accepted: socket.socket) -> None:
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(self._protocol, accepted)

    def close(self) -> None:
        """Take no further connection. The listener stays open."""
        if self._left is not None:
            self._left.cancel()
        self._loop.remove_reader(self._listener)
