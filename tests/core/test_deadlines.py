"""A deadline ends what runs inside it, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from core.deadlines import Deadline

FOR_EVER = 60.0


async def test_what_lasts_longer_than_its_deadline_raises_timeout_error() -> None:
    with pytest.raises(TimeoutError), Deadline(0.1):
        await asyncio.Event().wait()


async def test_what_ends_in_time_is_not_disturbed_afterwards() -> None:
    with Deadline(0.05):
        await asyncio.sleep(0)
    await asyncio.sleep(0.15)


async def test_an_outer_deadline_ends_what_has_a_later_one() -> None:
    with pytest.raises(TimeoutError), Deadline(0.1), Deadline(FOR_EVER):
        await asyncio.Event().wait()


async def test_a_cancellation_from_outside_stays_a_cancellation() -> None:
    async def wait() -> None:
        with Deadline(FOR_EVER):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
