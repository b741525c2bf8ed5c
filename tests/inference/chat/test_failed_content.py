"""The content of failed requests is kept where an owner wants that: encrypted, for so long, for owners."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from accounts.models import Organization
from inference.chat import captures
from inference.chat.captures import reveal
from inference.models import DiagnosticCapture, FailedContent
from inference.wire.request import ChatRequest
from tests.support.builders.speech_rows import principal
from tests.support.live import Gateway
from tests.support.until import until

SECRET = "the harbour password"


def keep(gateway: Gateway, hours: int) -> None:
    """Have the gateway keep failed content, and wait until it knows."""
    gateway.organization.failed_content_hours = hours
    gateway.organization.save()

    def is_known() -> bool:
        failed = ask(gateway, "wait [[sim fault=status@500]]")
        return FailedContent.objects.filter(pk=failed).exists() is (hours > 0)

    until(is_known)


def ask(gateway: Gateway, text: str, **fields: Any) -> str:
    """Send a chat; return its id."""
    return gateway.chat(text, **fields).headers["x-request-id"]


def kept(request_id: str) -> FailedContent | None:
    return FailedContent.objects.filter(pk=request_id).first()


def test_what_was_asked_and_answered_of_a_failed_request_is_kept(gateway: Gateway) -> None:
    keep(gateway, 5)

    stream = ask(gateway, f"{SECRET} say: one two three [[sim fault=garbage@2]]", stream=True)
    whole = ask(gateway, f"{SECRET} [[sim fault=status@500]]")
    good = ask(gateway, f"{SECRET} say: fine")
    refused = ask(gateway, SECRET, model="nothing")

    found = kept(stream)
    assert found is not None
    content = reveal(found)
    assert json.loads(content.request)["messages"][0]["content"].startswith(SECRET)
    assert json.loads(content.request)["model"] == "acme/demo-8b", "not the server's name of it"
    assert content.answer.startswith("one")
    assert SECRET.encode() not in bytes(found.content)
    assert found.expires_at - found.created_at == timedelta(hours=5)
    assert found.organization_id == gateway.organization.pk
    assert kept(whole) is not None
    assert kept(good) is None
    assert kept(refused) is None
    assert not DiagnosticCapture.objects.filter(organization_id=gateway.organization.pk).exists()
    assert SECRET not in gateway.command.log.read_text()


@pytest.mark.parametrize("forbidden", [False, True])
def test_nothing_is_kept_unless_an_owner_wants_it_and_operators_allow_it(
    gateway: Gateway, forbidden: bool
) -> None:
    if forbidden:
        keep(gateway, 1)
        gateway.organization.captures_allowed = False
        gateway.organization.save()
        until(lambda: kept(ask(gateway, "[[sim fault=status@500]]")) is None)

    failed = ask(gateway, f"{SECRET} [[sim fault=status@500]]")

    assert kept(failed) is None


async def test_the_content_is_bounded_and_kept_no_longer_than_captures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored: list[tuple[captures.CapturedContent, timedelta]] = []

    def store(*given: object) -> captures.Outcome:
        stored.append(given[-2:])  # type: ignore[arg-type]  # as _store takes them
        return captures.Outcome.KEPT

    monkeypatch.setattr(captures, "_store", store)
    monkeypatch.setattr(settings, "SVC_CAPTURE_BYTES", 40)
    asked = ChatRequest.from_fields(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "x" * 99}]}
    )
    caller = replace(principal(Organization(name="Acme")), failed_content_hours=10_000)

    await captures.keep_failed("req_1", caller, asked, "é" * 99)

    ((content, kept_for),) = stored
    assert (len(content.request), content.is_cut, content.answer_bytes) == (40, True, 198)
    assert content.answer == "é" * 20
    assert kept_for == timedelta(hours=settings.SVC_CAPTURE_HOURS)
