"""Somebody without a key sends heads as long as they may be, with hundreds of headers.

He hopes that parsing them, and making lists of them, costs more than sending them.
"""

from __future__ import annotations

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request

_HEADERS = 90
_COOKIES = 3000


async def attack(target: Target, tally: Tally) -> None:
    many = {f"X-{number}": "v" * 300 for number in range(_HEADERS)}
    cookies = {"Cookie": "; ".join(f"c{number}=v" for number in range(_COOKIES))}
    languages = {"Accept-Language": ",".join(f"x{number};q=0.5" for number in range(_COOKIES))}
    contents = [
        request("GET", path, headers=headers)
        for path in ("/v1/models", "/console/login", "/v1/usage?" + "a=1&" * 2000)
        for headers in (many, cookies, languages)
    ]
    numbers = iter(range(10**9))

    async def one() -> None:
        await tally.ask(target.port, contents[next(numbers) % len(contents)])

    await flood(one, per_second=60, at_once=30)
