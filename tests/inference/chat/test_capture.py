"""Diagnostic captures are kept on request, encrypted, for at least a day, and then deleted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from django.db import connection

from core.clock import now
from inference.chat.captures import reveal
from inference.models import DiagnosticCapture
from tests.support.live import Gateway
from tests.support.until import until

DAY = timedelta(hours=24)


def chat(gateway: Gateway, text: str, header: str | None, **fields: object) -> httpx2.Response:
    headers = {} if header is None else {"x-svc-diagnostic-capture": header}
    body = {
        "model": "acme/demo-8b",
        "messages": [{"role": "user", "content": text}],
        "canary_field": "never sent",
        **fields,
    }
    return gateway.post(body, headers=headers)


def captured(answer: httpx2.Response) -> DiagnosticCapture | None:
    return DiagnosticCapture.objects.filter(request_id=answer.headers["x-request-id"]).first()


KEPT = ("1", "true", "yes", "on", "TRUE", "On")


@pytest.mark.parametrize(
    "header", [*KEPT, None, "", "0", "false", "no", "off", "2", "y", "1, true"]
)
def test_the_header_keeps_this_one_request(gateway: Gateway, header: str | None) -> None:
    answer = chat(gateway, "say: hello", header)

    assert answer.status_code == 200
    assert (captured(answer) is not None) is (header in KEPT)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_capture_has_the_body_for_the_model_server_and_its_whole_answer(
    gateway: Gateway, streamed: bool
) -> None:
    marker = f"capture {uuid.uuid4()}"

    answer = chat(gateway, f"{marker} say: one two", "1", stream=streamed)

    capture = captured(answer)
    assert capture is not None
    content = reveal(capture)
    assert json.loads(content.request) == gateway.simulator.request_with(marker)["body"]
    assert " two" in content.answer
    assert content.answer.endswith("data: [DONE]\n\n") is streamed
    assert capture.organization_id == gateway.organization.pk
    assert capture.expires_at - capture.created_at >= DAY


def test_a_failed_request_is_kept_with_the_part_of_the_answer_that_came(gateway: Gateway) -> None:
    answer = chat(gateway, "say: one two three [[sim fault=garbage@1]]", "1", stream=True)

    capture = captured(answer)
    assert capture is not None
    assert '"one"' in reveal(capture).answer


def test_a_request_that_was_refused_is_not_kept(gateway: Gateway) -> None:
    answer = chat(gateway, "hi", "1", temperature=9)

    assert answer.status_code == 400
    assert captured(answer) is None


def test_the_database_does_not_hold_the_text(gateway: Gateway, worker_directory: Path) -> None:
    secret = f"secret{uuid.uuid4().hex}"

    capture = captured(chat(gateway, f"{secret} say: {secret}", "1"))

    assert capture is not None
    assert secret in reveal(capture).request
    assert secret.encode() not in bytes(capture.content)
    if connection.vendor == "sqlite":
        files = list(worker_directory.glob("live.sqlite3*"))
        assert files
        assert not [path for path in files if secret.encode() in path.read_bytes()]


@pytest.mark.long
def test_a_capture_is_deleted_when_it_expires_and_not_before(
    gateway: Gateway, start_gateway: Callable[..., Gateway]
) -> None:
    due, kept = (captured(chat(gateway, "say: ok", "1")) for _ in range(2))
    assert due is not None
    assert kept is not None
    DiagnosticCapture.objects.filter(pk=due.pk).update(expires_at=now() - timedelta(seconds=1))

    start_gateway()

    until(lambda: not DiagnosticCapture.objects.filter(pk=due.pk).exists())
    assert DiagnosticCapture.objects.filter(pk=kept.pk).exists()
