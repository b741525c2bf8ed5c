"""A member who is logged in reloads the console's pages as fast as he can.

He hopes that pages that sum and draw use up the threads and database connections of everybody else.
"""

from __future__ import annotations

import asyncio

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request

_PAGES = ("/console/usage", "/console/requests", "/console/keys", "/console/keys/new")


async def attack(target: Target, tally: Tally) -> None:
    cookie = {"Cookie": f"sessionid={target.tenant.session}"}
    contents = [request("GET", page, headers=cookie) for page in _PAGES]
    await asyncio.gather(
        *(
            flood(
                lambda content=content: tally.ask(target.port, content),  # type: ignore[misc]
                per_second=15,
                at_once=30,
            )
            for content in contents
        )
    )
