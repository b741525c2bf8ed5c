"""A receipt whose answer is held back until its row is durable."""

from __future__ import annotations

import asyncio

import msgspec

from usage.ledger.journal.segments import Segment
from usage.receipts import AnyReceipt


class Waiting(msgspec.Struct, eq=False):
    """``begun``: whether the client has received the beginning of its answer; ``segment``: the
    journal segment to be synced."""

    receipt: AnyReceipt
    durable: asyncio.Future[None]
    begun: bool | None = None
    segment: Segment | None = None
    failed_syncs: int = 0

    @property
    def request_id(self) -> str:
        return self.receipt.request_id

    def release(self) -> None:
        """Let the answer go, because its row is durable."""
        if not self.durable.done():
            self.durable.set_result(None)
