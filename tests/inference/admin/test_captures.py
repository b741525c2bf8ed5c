"""The admin's pages of diagnostic captures record each reading."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import msgspec
import pytest
from django.test import Client

from core.clock import now
from core.ids import request_id
from inference.chat import captures
from inference.chat.captures import CapturedContent
from inference.models.captures import CaptureReading, DiagnosticCapture
from tests.support.pages.admin_forms import logged_in, operator

pytestmark = pytest.mark.django_db

CAPTURES = "/admin/inference/diagnosticcapture/"


@pytest.fixture
def capture() -> DiagnosticCapture:
    content = CapturedContent("the prompt", "the answer")
    return DiagnosticCapture.objects.create(
        request_id=request_id(),
        organization_id=uuid.uuid4(),
        created_at=now(),
        expires_at=now() + timedelta(hours=1),
        content=captures._cipher().seal(msgspec.json.encode(content)),
    )


def link_in_the_list(client: Client) -> str:
    found = re.search(rf'href="({CAPTURES}[^"?]+)', client.get(CAPTURES).content.decode())
    assert found is not None
    return found[1]


def test_a_capture_opened_from_the_list_is_a_recorded_reading(capture: DiagnosticCapture) -> None:
    me = operator("inference.view_diagnosticcapture")
    client = logged_in(me)

    page = client.get(link_in_the_list(client)).content.decode()

    assert "the prompt" in page
    reading = CaptureReading.objects.get()
    assert (reading.request_id, reading.operator) == (capture.request_id, me)
    assert reading.organization_id == capture.organization_id


def test_a_capture_opened_by_its_plain_address_is_a_recorded_reading(
    capture: DiagnosticCapture,
) -> None:
    client = logged_in(operator("inference.view_diagnosticcapture"))

    page = client.get(f"{CAPTURES}{capture.pk}/change/").content.decode()

    assert "the prompt" in page
    assert CaptureReading.objects.get().request_id == capture.request_id


def test_who_may_not_read_a_capture_has_not_read_it(capture: DiagnosticCapture) -> None:
    client = logged_in(operator("inference.view_capturereading"))

    assert client.get(f"{CAPTURES}{capture.pk}/change/").status_code == 403
    assert not CaptureReading.objects.exists()
