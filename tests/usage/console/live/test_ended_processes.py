"""What a process that has ended leaves in the groups of the channel layer, with the real Redis."""

from __future__ import annotations

import pytest

from tests.support.live import manage, output_of
from tests.support.servers.redis_store import REDIS_URL

pytestmark = pytest.mark.redis

_SENDS_TO_ONE_THAT_ENDED = """
import asyncio, time, uuid
from unittest import mock
import channels_redis.core
from channels.layers import get_channel_layer

async def main():
    layer, group = get_channel_layer(), f"svc.test.{uuid.uuid4()}"
    await layer.group_add(group, await layer.new_channel("ended"))
    for _ in range(layer.capacity + 1):
        await layer.group_send(group, {"type": "ended"})
    later = time.time() + 600
    with mock.patch.object(channels_redis.core.time, "time", lambda: later):
        await layer.group_send(group, {"type": "ended"})
    connection = layer.connection(layer.consistent_hash(group))
    print("left:", await connection.zcard(layer._group_key(group)))
    await layer.close_pools()

asyncio.run(main())
"""


def test_it_is_forgotten_within_minutes_and_fills_no_log() -> None:
    done = manage("shell", "-c", _SENDS_TO_ONE_THAT_ENDED, REDIS_URL=REDIS_URL)
    assert "left: 0" in output_of(done)
    assert "over capacity" not in done.stderr
