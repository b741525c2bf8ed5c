"""The test of a backend in the admin, against servers that run."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry
from inference.models import Backend, Deployment
from speech.models import SpeechBackend, Voice
from tests.support.builders.catalog_rows import serving
from tests.support.live import free_port
from tests.support.model_servers.dialects import VLLM, Dialect, running
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from tests.support.speech.speech_server import SpeechServer

pytestmark = pytest.mark.django_db


def outcome(client: Client, row: Backend | SpeechBackend) -> str:
    answer = client.post(f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/test/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_page_of_a_backend_leads_to_its_test_and_reading_it_sends_nothing(
    operator: Client,
) -> None:
    with running(VLLM) as server:
        backend = serving(f"{server.root}/v1")
        page = operator.get(f"/admin/inference/backend/{backend.pk}/change/").content.decode()
        assert f'href="/admin/inference/backend/{backend.pk}/test/"' in page

        shown = operator.get(f"/admin/inference/backend/{backend.pk}/test/").content.decode()

    assert "one token of each model that the backend serves" in shown
    assert "Result" not in shown


OUTCOMES: dict[str, tuple[str, str | None, list[str], list[str]]] = {
    "works": (
        "ROOT/v1",
        "/models/qwen",
        [
            "The backend works.",
            "Connect and list models",
            "One token of /models/qwen",
            "answered in",
        ],
        [],
    ),
    "no server": (
        "http://127.0.0.1:1/v1",
        "/models/qwen",
        ["The backend does not work yet.", "Connection refused"],
        ["One token"],
    ),
    "no path": (
        "ROOT",
        "/models/qwen",
        ["does not work yet", "change the base URL to ROOT/v1"],
        [],
    ),
    "not listed": ("ROOT/v1", "nobody", ["though its list does not name it"], []),
    "no deployment": ("ROOT/v1", None, ["No deployment is enabled"], []),
}
"""The address and model of a backend, what its test says, and what it does not."""


@pytest.mark.parametrize("name", OUTCOMES)
def test_each_outcome_is_said_in_words(operator: Client, name: str) -> None:
    address, model, said, unsaid = OUTCOMES[name]
    with running(VLLM) as server:
        backend = serving(address.replace("ROOT", server.root), model or "demo")
        if model is None:
            Deployment.objects.all().delete()
        page = outcome(operator, backend)

    for each in said:
        assert each.replace("ROOT", server.root) in page
    for each in unsaid:
        assert each not in page


def test_a_key_that_cannot_be_read_is_said_and_nothing_is_sent(operator: Client) -> None:
    backend = serving(f"http://127.0.0.1:{free_port()}/v1")
    Backend.objects.update(api_key_env="SVC_BACKEND_KEY_NOWHERE")

    page = outcome(operator, backend)

    assert "SVC_BACKEND_KEY_NOWHERE" in page
    assert "Connect" not in page


@pytest.mark.parametrize("kind", ["backend", "speech backend"])
def test_a_test_has_an_audit_entry_that_says_where_the_key_went(
    operator: Client, kind: str
) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    backend: Backend | SpeechBackend = serving(address)
    if kind == "speech backend":
        backend = SpeechBackend.objects.create(name="speaking", base_url=address)
    backend.api_key_env = "SVC_BACKEND_KEY_NOWHERE"
    backend.save()
    operator.get(f"/admin/{backend._meta.app_label}/{backend._meta.model_name}/{backend.pk}/test/")
    assert not AuditEntry.objects.filter(verb="tested").exists()

    outcome(operator, backend)

    entry = AuditEntry.objects.get(verb="tested")
    assert (entry.kind, entry.subject_id) == (kind, str(backend.pk))
    assert (entry.actor, entry.source) == ("op@example.com", "admin")
    assert entry.changes == {
        "base_url": [None, address],
        "api_key_env": [None, "SVC_BACKEND_KEY_NOWHERE"],
    }


def test_a_server_that_quotes_its_headers_shows_the_operator_no_key(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_QUOTED", "sk-0123456789")
    with running(Dialect(quotes_headers=True)) as server:
        backend = serving(f"{server.root}/v1", "demo")
        backend.api_key_env = "SVC_BACKEND_KEY_QUOTED"
        backend.headers = {"X-Token": "token-of-the-proxy"}
        backend.save()

        page = outcome(operator, backend)

    assert "Refused the headers" in page
    assert "[secret]" in page
    assert "sk-0123456789" not in page
    assert "token-of-the-proxy" not in page


def test_only_who_may_change_a_backend_may_test_it() -> None:
    client = logged_in(operator_with("inference.view_backend"))
    backend = serving(f"http://127.0.0.1:{free_port()}/v1")

    assert client.post(f"/admin/inference/backend/{backend.pk}/test/").status_code == 403
    page = client.get(f"/admin/inference/backend/{backend.pk}/change/").content.decode()
    assert f"/admin/inference/backend/{backend.pk}/test/" not in page


def test_a_speech_backend_speaks_a_word(operator: Client, speech_server: SpeechServer) -> None:
    backend = SpeechBackend.objects.create(name="speaking", base_url=f"{speech_server.url}/v1")
    Voice.objects.create(id="noah", language="en", engine_voice="noah", backend=backend)

    page = outcome(operator, backend)

    assert "The backend works." in page
    assert "One word by noah" in page
    assert "s of sound" in page


def test_a_speech_backend_that_is_away_is_said_in_words(operator: Client) -> None:
    backend = SpeechBackend.objects.create(
        name="away", base_url=f"http://127.0.0.1:{free_port()}/v1"
    )
    Voice.objects.create(id="noah", language="en", engine_voice="noah", backend=backend)

    assert "The backend does not work yet." in outcome(operator, backend)
