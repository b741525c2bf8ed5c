"""Comments in a stream that is silent, so that nothing between the gateway and its client cuts it.

Contract: open points, Inference, "Keep-alive comments". An operator chooses the seconds of silence for a
model; without them a request costs nothing for it. The first comment begins the response: from then on
a failure is in-band.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Protocol, Self

from core.asgi.http import Stoppable
from core.errors import ApiError
from core.monitoring import observation
from core.monitoring.logs import log_unexpected
from inference.chat.exchange import Client

log = logging.getLogger(__name__)

COMMENT: Final = b": keep-alive\n\n"
"""A comment and an empty line, which dispatches no event (HTML, 9.2.6)."""


class Sink(Client, Protocol):
    """Where an answer goes."""

    @property
    def status(self) -> int:
        """The HTTP status that was sent; 0 before."""

    def admit(self) -> None:
        """Count the request as in flight. Raises ``ServerOverloaded``."""

    def conclude(self) -> None:
        """Note that the answer has ended, so that its row is written with the status that was sent."""

    async def send_comment(self, comment: bytes) -> None:
        """Send a comment, after the head of the response, which is no part of the answer."""

    async def finish(self, last: bytes) -> None:
        """Send the answer's last bytes."""

    async def fail(self, error: ApiError) -> None:
        """Send ``error``: as a status when nothing was sent yet, as an in-band frame otherwise."""


class Comments:
    """Passes a streamed answer on to ``sink``, and comments after every ``seconds`` without a byte.

    A context manager: silence counts from entering it, and nothing is sent by itself after leaving it. A
    client that reads so slowly that bytes wait for it is sent no comment. ``request_id`` is for the log.
    """

    def __init__(self, sink: Sink, seconds: float, request_id: str) -> None:
        self._sink = sink
        self._seconds = seconds
        self._request_id = request_id
        self._clock = asyncio.get_running_loop().time
        self._sent_at = self._clock()
        self._sending = asyncio.Lock()
        self._concluded = False
        self._has_answered = False
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._sent_at = self._clock()
        self._task = asyncio.create_task(self._comment())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send no comment from now on."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    @property
    def disconnected(self) -> bool:
        return self._sink.disconnected

    @property
    def backed_up(self) -> bool:
        return self._sink.backed_up

    @property
    def status(self) -> int:
        return self._sink.status

    def follow(self, exchange: Stoppable) -> None:
        self._sink.follow(exchange)

    def admit(self) -> None:
        self._sink.admit()

    def conclude(self) -> None:
        """Begin no response from now on: the row would have another status than the client."""
        self._concluded = True
        self._sink.conclude()

    async def send_comment(self, comment: bytes) -> None:
        async with self._sending:
            await self._sink.send_comment(comment)
            self._sent_at = self._clock()

    async def send_frames(self, frames: bytes) -> None:
        async with self._sending:
            self._mark_answer()
            await self._sink.send_frames(frames)
            self._sent_at = self._clock()

    async def finish(self, last: bytes) -> None:
        async with self._sending:
            self.close()
            self._mark_answer()
            await self._sink.finish(last)

    async def fail(self, error: ApiError) -> None:
        async with self._sending:
            self.close()
            await self._sink.fail(error)

    def _mark_answer(self) -> None:
        if not self._has_answered:
            self._has_answered = True
            if self.status and (seen := observation.current()) is not None:
                # The head was sent with a comment; the answer itself begins now.
                seen.mark_first_byte()

    async def _comment(self) -> None:
        try:
            while not self.disconnected:
                left = self._sent_at + self._seconds - self._clock()
                if left > 0:
                    await asyncio.sleep(left)
                elif self._is_silent():
                    await self.send_comment(COMMENT)
                else:
                    self._sent_at = self._clock()
        except Exception as error:
            log_unexpected(log, self._request_id, error)

    def _is_silent(self) -> bool:
        """Whether a comment is of use: no bytes wait for the client, and the response may begin."""
        is_sending = self._sending.locked() or self.backed_up
        return not is_sending and (bool(self.status) or not self._concluded)
