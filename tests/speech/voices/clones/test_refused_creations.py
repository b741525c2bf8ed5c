"""Refused creations of clones count as refused requests, and organizations take turns at reading."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from accounts.models import Organization
from core.errors import InvalidField
from speech.voices.clones import creation
from speech.voices.clones.wire import CloneRequest
from tests.speech.voices.clones.test_creation import Attempts, Failing, Refusals
from tests.speech.voices.clones.test_creation import creation as creation_of
from tests.support.builders import speech_rows
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.speech.client import SpeechClient, new_client

StartGateway = Callable[..., Gateway]


@pytest.fixture
def strict(start_gateway: StartGateway) -> Gateway:
    """A gateway where an organization without a limit may have ten requests refused."""
    return start_gateway(SVC_REFUSED_REQUESTS_PER_MINUTE="1")


def assert_refused_too_often(status: int, headers: dict[str, str]) -> None:
    assert status == 429
    assert headers["x-quota-reason"] == "refused_requests_per_minute"
    assert int(headers["retry-after"]) >= 1


def statuses(client: SpeechClient, name: str, count: int, **fields: str) -> list[int]:
    return [client.create(name, **fields).status_code for _ in range(count)]


def test_invalid_creations_end_in_429_before_a_body_is_sent(strict: Gateway) -> None:
    client = new_client(strict)
    assert statuses(client, "Anna", 10, audio_b64="#") == [400] * 10

    with RawClient(strict, strict.speech_port) as raw:
        raw.send(
            (
                "POST /v1/voices HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 15000000\r\n"
                f"authorization: Bearer {client.key}\r\n\r\n"
            ).encode()
        )
        status, headers, _ = raw.answer()
    assert_refused_too_often(status, headers)
    assert new_client(strict).create().status_code == 201


def test_names_that_are_taken_end_in_429(strict: Gateway) -> None:
    client = new_client(strict)
    assert client.create("Anna").status_code == 201
    answers = [client.create("anna") for _ in range(11)]
    assert answers[0].status_code == 409
    assert_refused_too_often(answers[-1].status_code, dict(answers[-1].headers))


async def test_a_body_that_arrived_meanwhile_is_not_parsed() -> None:
    refusals = Refusals()
    making = creation_of(Failing(), Attempts(), refusals)
    principal = speech_rows.principal(Organization(name="Acme"))
    refusals.are_too_many = True
    with pytest.raises(refusals.error):
        await making.create(b"not even JSON", principal)
    assert refusals.counted == []


async def test_organizations_take_turns_at_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bytes] = []
    goes_on = threading.Event()

    def read(body: bytes) -> CloneRequest:
        begun.append(body)
        goes_on.wait(60)
        raise InvalidField("no")

    monkeypatch.setattr(creation, "read_request", read)
    refusals = Refusals()
    making = creation_of(Failing(), Attempts(), refusals)
    flood, other = (speech_rows.principal(Organization(name=name)) for name in ("flood", "other"))
    tasks = [
        asyncio.ensure_future(making.create(body, principal))
        for principal, body in [(flood, b"f0"), (flood, b"f1"), (flood, b"f2"), (other, b"o")]
    ]
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == [b"f0", b"f1", b"o", b"f2"]
    assert refusals.counted == [2, 2, 1, 2]
