"""A member makes API keys in the console without end.

Every change of a key makes every worker read it: he hopes to slow down everybody's.
"""

from __future__ import annotations

import secrets
from urllib.parse import urlencode

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request


async def attack(target: Target, tally: Tally) -> None:
    async def make() -> None:
        token = secrets.token_hex(16)
        form = {"csrfmiddlewaretoken": token, "scope": "inference", "label": "one more"}
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": f"csrftoken={token}; sessionid={target.tenant.session}",
        }
        body = urlencode(form).encode()
        await tally.ask(
            target.port, request("POST", "/console/keys/new", body=body, headers=headers)
        )

    await flood(make, per_second=15, at_once=10)
