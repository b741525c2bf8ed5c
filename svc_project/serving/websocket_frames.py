"""Bounds the fragments and control frames of one WebSocket client.

The library bounds the bytes of a message, not its frames: 70 000 empty fragments of one message,
or as many pings, cost a second of work and never reach the application.
"""

from __future__ import annotations

import time
from typing import Any, Final

from websockets.frames import CTRL_OPCODES, CloseCode, Frame, Opcode
from websockets.server import ServerProtocol

MOST_EXTRA_FRAMES: Final = 1024
"""Fragments and control frames accepted at once: the largest message in 64-byte fragments."""
EXTRA_FRAMES_PER_SECOND: Final = 64
"""The rate at which the allowance refills."""


class TooManyFrames(Exception):
    """The client sent more fragments or control frames than are accepted."""


class BoundedFrames(ServerProtocol):
    """Fails a connection with too many fragments (1009) or control frames (1008).

    Whole messages in one frame do not count: the application takes them at its own pace.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._spent_at = time.monotonic()
        self._left = float(MOST_EXTRA_FRAMES)

    def recv_frame(self, frame: Frame) -> None:
        is_control = frame.opcode in CTRL_OPCODES
        is_fragment = not frame.fin or frame.opcode is Opcode.CONT
        if (is_control or is_fragment) and not self._may_take():
            code = CloseCode.POLICY_VIOLATION if is_control else CloseCode.MESSAGE_TOO_BIG
            self.fail(code, "too many control frames" if is_control else "too many fragments")
            self.parser_exc = TooManyFrames()
            return
        super().recv_frame(frame)

    def _may_take(self) -> bool:
        now = time.monotonic()
        refilled = (now - self._spent_at) * EXTRA_FRAMES_PER_SECOND
        self._left = min(self._left + refilled, MOST_EXTRA_FRAMES)
        self._spent_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
