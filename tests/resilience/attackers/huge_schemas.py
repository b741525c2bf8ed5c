"""The holder of an inference key sends schemas and tools of 900 KB that take long to judge.

He hopes that a request which is refused in the end stops the event loop for seconds first.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import chat, request


def schemas() -> list[Any]:
    """Documents of about 900 KB: many branches, unknown types, properties, references."""
    return [
        {"anyOf": [{}] * 290_000},
        {"anyOf": [{"type": "x"}] * 60_000},
        {"type": "object", "properties": {f"p{n}": {} for n in range(70_000)}},
        {
            "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(25_000)},
            "$ref": "#/$defs/d0",
        },
        {"enum": list(range(120_000))},
    ]


async def attack(target: Target, tally: Tally) -> None:
    formats = [
        {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for schema in schemas()
    ]
    bodies = [chat(target, "hello", response_format=each) for each in formats]
    tool: dict[str, Any] = {"name": "x", "parameters": schemas()[2]}
    bodies.append(chat(target, "hello", tools=[{"type": "function", "function": tool}]))
    bodies = [json.dumps(json.loads(body), separators=(",", ":")).encode() for body in bodies]
    contents = itertools.cycle(
        request("POST", "/v1/chat/completions", key=target.tenant.inference, body=body)
        for body in bodies
    )
    await flood(lambda: tally.ask(target.port, next(contents)), per_second=4, at_once=4)
