"""Somebody without a key tries passwords of many accounts, at the console and the admin.

He hopes that hashing passwords, which is slow on purpose, uses up the processor.
"""

from __future__ import annotations

import asyncio
import secrets
from urllib.parse import urlencode

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request


async def attack(target: Target, tally: Tally) -> None:
    async def attempt(path: str) -> None:
        token = secrets.token_hex(16)
        form = {
            "csrfmiddlewaretoken": token,
            "username": f"{secrets.token_hex(4)}@svc.example",
            "password": "a guess that is wrong",
        }
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": f"csrftoken={token}",
        }
        body = urlencode(form).encode()
        await tally.ask(target.port, request("POST", path, body=body, headers=headers))

    await asyncio.gather(
        flood(lambda: attempt("/console/login"), per_second=20, at_once=20),
        flood(lambda: attempt("/admin/login/"), per_second=20, at_once=20),
    )
