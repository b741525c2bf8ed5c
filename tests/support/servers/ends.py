"""How a program that starts others ends, so that those end too."""

from __future__ import annotations

import signal
from types import FrameType


def end_on_sigterm() -> None:
    """Make SIGTERM end this process like an exception, so that it ends what it has started.

    Another one meanwhile changes nothing.
    """

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, end)
