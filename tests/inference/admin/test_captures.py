"""The admin's pages of diagnostic captures record each reading."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from core.clock import now
from core.ids import request_id
from inference.chat import captures
from inference.chat.captures import CapturedContent
from inference.models.captures import CaptureReading, DiagnosticCapture
from tests.support.pages.admin_forms import logged_in, operator
from tests.support.pages.console import page_at

pytestmark = pytest.mark.django_db

CAPTURES = "/admin/inference/diagnosticcapture/"


def captured(**content: Any) -> DiagnosticCapture:
    kept = CapturedContent("the prompt", "the answer", **content)
    return DiagnosticCapture.objects.create(
        request_id=request_id(),
        organization_id=uuid.uuid4(),
        created_at=now(),
        expires_at=now() + timedelta(hours=1),
        content=captures._cipher().seal(msgspec.json.encode(kept)),
    )


@pytest.mark.parametrize("way", ["from the list", "by its plain address"])
def test_an_opened_capture_is_a_recorded_reading(way: str) -> None:
    capture, me = captured(), operator("inference.view_diagnosticcapture")
    client = logged_in(me)
    address = f"{CAPTURES}{capture.pk}/change/"
    if way == "from the list":
        (address,) = re.findall(rf'href="({CAPTURES}[^"?]+)', page_at(client, CAPTURES))

    assert "the prompt" in page_at(client, address)

    reading = CaptureReading.objects.get()
    assert (reading.request_id, reading.operator) == (capture.request_id, me)
    assert reading.organization_id == capture.organization_id


def test_who_may_not_read_a_capture_has_not_read_it() -> None:
    client = logged_in(operator("inference.view_capturereading"))

    assert client.get(f"{CAPTURES}{captured().pk}/change/").status_code == 403
    assert not CaptureReading.objects.exists()


def test_a_capture_that_was_cut_says_so() -> None:
    capture = captured(request_bytes=10, answer_bytes=2_000_000, is_cut=True)
    client = logged_in(operator("inference.view_diagnosticcapture"))

    page = page_at(client, f"{CAPTURES}{capture.pk}/change/")

    assert '<pre tabindex="0">the prompt</pre>' in page
    assert "Cut: the first 10 of 2000000 bytes were kept." in page
    assert page.count("Cut: ") == 1
