"""The timeouts of an exchange: they end what runs inside, and nothing else."""

from __future__ import annotations

import asyncio
import time

import pytest

from inference.chat.exchange import ExchangeTimeouts

FOR_EVER = 60.0


async def waits(timeouts: ExchangeTimeouts, seconds: float) -> None:
    """Wait for ever, with a timeout of ``seconds``."""
    with timeouts:
        timeouts.wait_at_most(seconds)
        await asyncio.sleep(FOR_EVER)


@pytest.mark.parametrize(("total", "wait"), [(FOR_EVER, 0.1), (0.1, FOR_EVER)])
async def test_a_wait_ends_with_its_own_timeout_or_with_the_total(
    total: float, wait: float
) -> None:
    began = time.monotonic()
    timeouts = ExchangeTimeouts(total)
    with pytest.raises(TimeoutError):
        await waits(timeouts, wait)
    assert time.monotonic() - began >= 0.1
    assert timeouts.total_expired is (total == 0.1)


async def test_each_wait_has_its_own_timeout() -> None:
    with ExchangeTimeouts(FOR_EVER) as timeouts:
        for _ in range(6):
            timeouts.wait_at_most(1.5)
            await asyncio.sleep(0.3)


async def test_an_exchange_can_be_ended_from_outside_at_once() -> None:
    timeouts = ExchangeTimeouts(FOR_EVER)
    asyncio.get_running_loop().call_later(0.05, timeouts.end_within, 0.0)
    with pytest.raises(TimeoutError):
        await waits(timeouts, FOR_EVER)
