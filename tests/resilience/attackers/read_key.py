"""The holder of a read key asks for large summaries and models, very many at once.

He hopes to use up the threads and database connections that everybody's pages need.
"""

from __future__ import annotations

import asyncio

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request

_PATH = "/v1/usage?group_by=model,api_key,time&bucket=hour"


async def attack(target: Target, tally: Tally) -> None:
    key = target.tenant.read
    summary = request("GET", _PATH, key=key)
    page = request("GET", "/v1/usage/export?limit=1000", key=key)
    models = request("GET", "/v1/models", key=target.tenant.inference)
    voices = request("GET", "/v1/models", key=target.tenant.speech)
    await asyncio.gather(
        flood(lambda: tally.ask(target.port, summary), per_second=60, at_once=100),
        flood(lambda: tally.ask(target.port, page), per_second=10, at_once=20),
        flood(lambda: tally.ask(target.port, models), per_second=20, at_once=20),
        flood(lambda: tally.ask(target.speech_port, voices), per_second=20, at_once=20),
    )
