"""The bounds of an organization's captures: per hour, in size, in all, or forbidden."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta

import httpx2
import pytest

from accounts.models import Organization
from core.clock import now
from inference.chat import captures
from inference.chat.captures import CapturedContent, Outcome, reveal
from inference.models import DiagnosticCapture
from tests.inference.chat.test_capture import captured, chat
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until

PER_HOUR = 20
HOUR = timedelta(hours=1)


def earlier(gateway: Gateway, count: int, age: timedelta, size: int = 10) -> None:
    """Put captures of the organization into the database, made ``age`` ago."""
    made = now() - age
    DiagnosticCapture.objects.bulk_create(
        DiagnosticCapture(
            request_id=f"req_{uuid.uuid4().hex}",
            organization_id=gateway.organization.pk,
            created_at=made,
            expires_at=made + timedelta(hours=72),
            content=b"x" * size,
        )
        for _ in range(count)
    )


def not_kept(gateway: Gateway, why: str) -> float:
    """Return the number of captures that the gateway did not keep for this reason."""
    text = httpx2.get(f"{gateway.url}/metrics", verify=NO_TLS, timeout=60).text
    name = f'svc_captures_total{{outcome="{why}"'
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def test_a_bounded_number_is_kept_within_an_hour_and_requests_go_on(gateway: Gateway) -> None:
    earlier(gateway, PER_HOUR, 2 * HOUR)
    earlier(gateway, PER_HOUR - 1, HOUR / 2)
    before = not_kept(gateway, "too_many")

    last, beyond, streamed = (
        chat(gateway, "say: hi", "1", stream=streamed) for streamed in (False, False, True)
    )

    assert captured(last)
    assert beyond.status_code == streamed.status_code == 200
    assert streamed.text.endswith("data: [DONE]\n\n")
    assert captured(beyond) is captured(streamed) is None
    assert not_kept(gateway, "too_many") - before == 2


@pytest.mark.long
def test_the_total_size_of_an_organizations_captures_is_bounded(gateway: Gateway) -> None:
    earlier(gateway, 4, 2 * HOUR, size=16 * 1024 * 1024)

    answer = chat(gateway, "say: hi", "1")

    assert answer.status_code == 200
    assert captured(answer) is None


async def test_eight_captures_wait_for_the_thread_and_two_of_an_organization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = threading.Event()

    def stored(*_: object) -> Outcome:
        free.wait(60)
        return Outcome.KEPT

    monkeypatch.setattr(captures, "_store", stored)

    async def kept(organization_id: str) -> Outcome:
        content, hour = CapturedContent("", ""), timedelta(hours=1)
        return await captures._kept(DiagnosticCapture, "req_1", organization_id, content, hour)

    waiting = [asyncio.create_task(kept("a")) for _ in range(2)]
    await asyncio.sleep(0)
    assert await kept("a") is Outcome.BUSY
    waiting += [asyncio.create_task(kept(organization_id)) for organization_id in "bcdefg"]
    await asyncio.sleep(0)
    assert await kept("h") is Outcome.BUSY

    free.set()
    assert await asyncio.gather(*waiting) == [Outcome.KEPT] * 8
    assert await kept("a") is Outcome.KEPT
    await asyncio.to_thread(captures.thread.close)


def test_an_operator_forbids_captures_of_an_organization(gateway: Gateway) -> None:
    assert captured(chat(gateway, "say: hi", "1"))
    gateway.organization.captures_allowed = False
    gateway.organization.save()

    def none_is_kept() -> bool:
        answer = chat(gateway, "say: hi", "1")
        assert answer.status_code == 200
        return captured(answer) is None

    until(none_is_kept)
    assert Organization.objects.get(pk=gateway.organization.pk).captures_allowed is False


@pytest.fixture
def frugal(gateway_with: Callable[..., Gateway]) -> Gateway:
    return gateway_with(SVC_CAPTURE_BYTES="1000")


def test_a_capture_that_is_too_large_is_cut_and_marked(frugal: Gateway) -> None:
    small = captured(chat(frugal, "say: hi", "1"))
    long = " ".join(f"word{number}" for number in range(200))
    answers = [chat(frugal, f"say: {long}", "1", stream=streamed) for streamed in (False, True)]

    assert small is not None
    kept = reveal(small)
    assert not kept.is_cut
    for answer in answers:
        capture = captured(answer)
        assert answer.status_code == 200
        assert len(answer.content) > 1000
        assert capture is not None
        kept = reveal(capture)
        assert kept.is_cut
        assert len(kept.request.encode()) == len(kept.answer.encode()) == 1000
        assert kept.request_bytes > 1000
        assert kept.answer_bytes > 1000


def test_older_captures_are_shown_as_whole() -> None:
    assert not CapturedContent("request", "answer").is_cut
