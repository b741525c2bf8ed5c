"""One run of the limit script, as Redis takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from svc_project.lib.limits.buckets import MINUTE, WINDOW_KEPT, Charge

LARGEST_PARTS: Final = 6 * 10**15
"""The script's arithmetic is exact up to 2^53; a limit of more parts is cut to this many."""

LARGEST_LIMIT: Final = LARGEST_PARTS // MINUTE
"""The largest limit a minute that is kept unchanged."""

SCRIPT: Final = Path(__file__).with_name("script.lua").read_text(encoding="utf-8")

Reply = list[int] | None
"""What the script returned; None when the store did not answer."""


class Call:
    """One run of the script; ``reply`` is None for a settlement, which has no waiting caller."""

    __slots__ = ("amounts", "charges", "reply", "step")

    def __init__(
        self,
        step: str,
        charges: Sequence[Charge],
        amounts: Sequence[int],
        reply: asyncio.Future[Reply] | None,
    ) -> None:
        self.step = step
        self.charges = charges
        self.amounts = amounts
        self.reply = reply

    @property
    def is_abandoned(self) -> bool:
        """Whether its caller was cancelled."""
        return self.reply is not None and self.reply.cancelled()

    def command(self, script: str | bytes, prefix: str) -> tuple[str | bytes | int, ...]:
        """The Redis command; ``script`` is the digest of the loaded script."""
        keys = [prefix + charge.bucket for charge in self.charges]
        return ("EVALSHA", script, len(keys), *keys, self.step, *self.arguments())

    def arguments(self) -> list[int]:
        """The arguments of the script after its step, five for each charge."""
        seeds = self.step == "reserve"
        return [
            argument
            for charge, amount in zip(self.charges, self.amounts, strict=True)
            for argument in _arguments(charge, amount, seeds)
        ]


def _arguments(charge: Charge, amount: int, seeds: bool) -> tuple[int, int, int, int, int]:
    window, unit = charge.window, charge.unit
    limit = min(charge.limit, LARGEST_PARTS // unit)
    if window is None:
        return limit, amount, unit, 0, -1
    before = window.used_before
    known = -1 if before is None or not seeds else min(before, LARGEST_PARTS)
    return limit, amount, unit, window.ends_in + WINDOW_KEPT, known
