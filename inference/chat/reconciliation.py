"""The independent count: the tokens that a real tokenizer counts in a sample of the requests.

It is never used for billing (inference contract, Token figures). Counting runs in one thread
beside the event loop, after the row was written, and delays no answer; the row's
``svc_counted_*`` and ``reconciliation`` columns are then filled in, once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import BoundedSemaphore
from typing import Any
from zlib import crc32

import msgspec
from django.conf import settings
from django.db import Error

from core.database.threads import keep_usable
from inference.chat import admission, tokenizers
from inference.chat.meter import Meter
from inference.wire import ChatRequest
from usage.ledger.independent_counts import IndependentCount, fill_in
from usage.models import Reconciliation

log = logging.getLogger(__name__)

_MOST_WAITING = 100
_DIVERGENCE_DECIMALS = Decimal("0.000001")


class Counted(msgspec.Struct, frozen=True):
    """The gateway's own token counts of one request."""

    input: int
    output: int


def is_sampled(request_id: str, fraction: float) -> bool:
    """Whether a request belongs to the sample; always the same for the same id."""
    return crc32(request_id.encode()) < fraction * 2**32


def divergence(counted: Counted, reported_total: int) -> Decimal | None:
    """(counted - reported) / reported over input and output; None when nothing was reported."""
    if not reported_total:
        return None
    difference = Decimal(counted.input + counted.output - reported_total)
    return (difference / Decimal(reported_total)).quantize(_DIVERGENCE_DECIMALS)


def matches(counted: Counted, reported_total: int, shape: str) -> bool:
    """Whether the count is as near to the report as the settings require for ``shape``.

    Chat templates add text that the request does not contain: a default system message, an
    introduction to tools, a wrapper around each call. Most of it does not grow with the request,
    so the tolerance is the larger of a number of tokens and a fraction. A report of 0 never matches.
    """
    if not reported_total:
        return False
    allowed = max(
        settings.SVC_RECONCILIATION_FLOOR_TOKENS[shape],
        settings.SVC_RECONCILIATION_TOLERANCE[shape] * reported_total,
    )
    return bool(abs(counted.input + counted.output - reported_total) <= allowed)


class Reconciler:
    """Counts in its own thread; a sampled request is skipped while ``_MOST_WAITING`` others wait."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reconciliation")
        self._room = BoundedSemaphore(_MOST_WAITING)

    def offer(self, meter: Meter, tokenizer: str, request: ChatRequest) -> None:
        """Count the request behind ``meter`` if it is in the sample; returns at once."""
        if not is_sampled(meter.identity.request_id, settings.SVC_SAMPLED_FRACTION):
            return
        if not self._room.acquire(blocking=False):
            return
        self._thread.submit(
            self._reconcile,
            meter.identity.request_id,
            tokenizer,
            request,
            meter.output_text,
            meter.reported_input + meter.reported_output,
        )

    def prepare(self, names: Iterable[str]) -> None:
        """Load tokenizers in the thread before they are needed.

        To load one stops the whole interpreter for a tenth of a second, which a start can spare.
        """
        for name in sorted(set(names) - {""}):
            self._thread.submit(_load, name)

    async def count_unreported(self, meter: Meter, tokenizer: str, request: ChatRequest) -> None:
        """Put the gateway's own counts into ``meter``, of what its backend did not report."""
        text = meter.unreported_text
        counted = await asyncio.get_running_loop().run_in_executor(
            self._thread, count, tokenizer, request, text
        )
        if counted is not None:
            meter.counted_input, meter.counted_output = counted.input, counted.output
        elif not meter.identity.streamed:
            meter.counted_output = admission.estimate_prompt(len(text.encode()))

    def close(self) -> None:
        """Stop after the queued counts."""
        self._thread.shutdown()

    def _reconcile(
        self, request_id: str, tokenizer: str, request: ChatRequest, output: str, reported: int
    ) -> None:
        try:
            counted = _independent_count(count(tokenizer, request, output), reported, request.shape)
            keep_usable()
            if not fill_in(request_id, counted):
                log.info("%s: counted, but its row is not in the database yet", request_id)
        except Error as error:
            log.warning("%s: not reconciled: %s", request_id, type(error).__name__)
        except Exception as error:
            log.error("%s: not reconciled: unexpected %s", request_id, type(error).__name__)
        finally:
            self._room.release()


def _load(name: str) -> tokenizers.Tokenizer | None:
    try:
        return tokenizers.load(name)
    except tokenizers.UnknownTokenizer as error:
        log.warning("%s", error)
        return None


def count(tokenizer: str, request: ChatRequest, output: str) -> Counted | None:
    """Count the tokens of a prompt and its answer; None when there is no usable tokenizer."""
    loaded = _load(tokenizer) if tokenizer else None
    if loaded is None:
        return None
    tools: Sequence[Any] | None = msgspec.to_builtins(request.tools)
    return Counted(
        tokenizers.count_prompt(loaded, msgspec.to_builtins(request.messages), tools),
        loaded.count(output),
    )


def _independent_count(counted: Counted | None, reported: int, shape: str) -> IndependentCount:
    if counted is None:
        return IndependentCount(Reconciliation.UNAVAILABLE)
    off = divergence(counted, reported)
    matched = matches(counted, reported, shape)
    return IndependentCount(
        Reconciliation.MATCHED if matched else Reconciliation.DIVERGED,
        counted.input,
        counted.output,
        None if off is None else str(off),
    )
