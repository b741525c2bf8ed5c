"""The cost of parsing requests is bounded: large bodies of one tenant, and refused requests."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until

GatewayWith = Callable[..., Gateway]


def tenant(gateway: Gateway, **limits: int | None) -> Gateway:
    """Create another organization on the same gateway."""
    unlimited = {"requests_per_minute": None, "tokens_per_minute": None}
    organization = Organization.objects.create(
        name=f"test {uuid.uuid4()}", **{**unlimited, **limits}
    )
    minted = mint(organization, Scope.INFERENCE, "test")
    return replace(gateway, organization=organization, api_key=minted.api_key, key=minted.secret)


def chat(**fields: Any) -> bytes:
    message = {"role": "user", "content": "a"}
    return json.dumps(
        {"model": "acme/demo-8b", "messages": [message], **fields}, separators=(",", ":")
    ).encode()


def with_schema(schema: Any) -> bytes:
    answer = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return chat(response_format=answer)


WORST = [
    with_schema({"anyOf": [{}] * 300_000}),
    chat(x=[[]] * 300_000),
    chat(x=0).replace(b'"x":0', b'"x":[' + b",".join([b"1e-309"] * 120_000) + b"]"),
    with_schema(
        {"type": "object", "$defs": {f"{n}": {"$ref": f"#/$defs/{n + 1}"} for n in range(28_000)}}
    ),
]


@contextmanager
def attackers(attacker: Gateway, count: int) -> Iterator[list[httpx2.Response]]:
    """Send the worst bodies over ``count`` connections; yield the answers."""
    answers: list[httpx2.Response] = []
    stop = threading.Event()

    def attack(number: int) -> None:
        while not stop.is_set():
            answers.append(attacker.post(WORST[number % len(WORST)], timeout=60))

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(attack, number) for number in range(count)]
        try:
            yield answers
        finally:
            stop.set()
            for each in running:
                each.result()


def test_the_worst_bodies_of_one_tenant_delay_no_other_and_end_in_429(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(SVC_REFUSED_REQUESTS_PER_MINUTE="20")
    attacker, victim = tenant(gateway, requests_per_minute=1), tenant(gateway)
    assert victim.chat("Hi.").status_code == 200

    with attackers(attacker, 4) as answers:
        for _ in range(8):
            assert victim.chat("Hi.").status_code == 200
            assert httpx2.get(f"{gateway.url}/livez", timeout=60, verify=NO_TLS).status_code == 200
        until(lambda: any(answer.status_code == 429 for answer in answers))

    # Each of these bodies counts for 16 or so of the 20: one or two, and one begun on each connection.
    assert {answer.status_code for answer in answers} == {400, 429}
    assert sum(answer.status_code == 400 for answer in answers) <= 8
    refusal = next(answer for answer in answers if answer.status_code == 429)
    assert refusal.json()["error"]["code"] == "rate_limit_exceeded"
    assert "refused requests per min: Limit 20" in refusal.json()["error"]["message"]
    assert int(refusal.headers["retry-after"]) >= 1
    assert int(refusal.headers["retry-after-ms"]) >= 1


def test_refused_requests_take_nothing_from_the_ordinary_limit(gateway: Gateway) -> None:
    caller = tenant(gateway, requests_per_minute=1)
    for _ in range(5):
        assert caller.chat("Hi.", temperature=9).status_code == 400
        assert caller.chat("Hi.", model="acme/none").status_code == 404
    assert caller.chat("Hi.").status_code == 200
    assert caller.chat("Hi.").status_code == 429


def test_a_large_body_is_not_parsed_while_its_limit_is_used_up(gateway: Gateway) -> None:
    caller = tenant(gateway, requests_per_minute=1)
    assert caller.chat("Hi.").status_code == 200
    wrong = chat(temperature=9, user="x" * 20_000)

    def refused_unread() -> httpx2.Response | None:
        # A refusal is remembered for a second, which a slow machine may need by itself.
        assert caller.chat("Hi.").status_code == 429
        answer = caller.post(wrong)
        return answer if answer.status_code == 429 else None

    answer = until(refused_unread)
    assert "acme/demo-8b on requests per min (RPM): Limit 1" in answer.json()["error"]["message"]
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"
    assert int(answer.headers["retry-after-ms"]) <= 60_000
