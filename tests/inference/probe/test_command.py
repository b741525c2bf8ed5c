"""``manage.py probe_backend``: what it prints, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import AuditEntry, ChangeStamp
from inference.models import Backend, Deployment, ModelEntry
from tests.support.builders import catalog_rows
from tests.support.live import free_port
from tests.support.model_servers.dialects import OLLAMA, TRANSFORMERS, VLLM, Dialect, running

pytestmark = pytest.mark.django_db


def run(*arguments: str, **options: Any) -> str:
    """What the command prints. Raises ``CommandError``."""
    out = StringIO()
    call_command("probe_backend", *arguments, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def served_by(address: str, model: str, **columns: Any) -> tuple[Backend, ModelEntry]:
    """A backend at ``address`` and a published entry that it serves as ``model``."""
    entry = catalog_rows.published(f"acme/{Backend.objects.count()}", **columns)
    backend = Backend.objects.get(deployments__weights=entry.weights)
    backend.base_url, backend.running_usage = address, "none"
    backend.save()
    Deployment.objects.filter(backend=backend).update(model=model)
    return backend, entry


def test_an_address_is_probed_and_nothing_is_written() -> None:
    with running(VLLM) as server:
        printed = run(server.root)

    assert f"{server.root}/v1" in printed
    assert "/models/qwen" in printed
    assert "running_usage     vllm" in printed
    assert not Backend.objects.exists()


def test_an_address_is_written_as_a_backend_that_serves_nothing_yet() -> None:
    with running(VLLM) as server:
        run(server.root, "--write", "--name", "gpu-9")

    backend = Backend.objects.get()
    assert (backend.name, backend.base_url) == ("gpu-9", f"{server.root}/v1")
    assert (backend.running_usage, backend.output_cap_field) == ("vllm", "both")
    assert backend.prefix_cache == "organization"
    assert not Deployment.objects.exists()


def test_a_backend_that_learns_its_dialect_is_left_to_learn_it() -> None:
    with running(VLLM) as server:
        backend, _ = served_by(server.root, "/models/qwen")
        backend.running_usage = "auto"
        backend.save()

        printed = run(backend.name, "--write")

    backend.refresh_from_db()
    assert "context_length 32768 -> 4096" in printed
    assert "running_usage     vllm" in printed
    assert backend.running_usage == "auto"


def test_a_backend_of_the_catalog_is_compared_and_changed_only_when_asked_to() -> None:
    with running(VLLM) as server:
        backend, entry = served_by(server.root, "/models/qwen", structured_output=False)
        stamp = ChangeStamp.objects.filter(subject="catalog").values_list("version", flat=True)
        before = stamp.get()

        printed = run(backend.name)

        assert "the catalog differs; --write changes it" in printed
        assert f"backend {backend}: running_usage none -> vllm" in printed
        assert f"model {entry}: context_length 32768 -> 4096" in printed
        backend.refresh_from_db()
        entry.refresh_from_db()
        assert (backend.running_usage, entry.context_length) == ("none", 32768)
        assert stamp.get() == before

        assert "\nwritten\n" in run(backend.name, "--write")

        backend.refresh_from_db()
        entry.refresh_from_db()
        assert (backend.base_url, backend.running_usage) == (f"{server.root}/v1", "vllm")
        assert (entry.context_length, entry.default_max_output_tokens) == (4096, 2048)
        assert (entry.tool_calling, entry.structured_output) == (True, True)
        assert stamp.get() != before
        assert AuditEntry.objects.filter(subject=str(backend), verb="changed").exists()
        assert "written" not in run(backend.name, "--write")


def test_a_shared_cache_is_remarked_on_and_a_salt_that_is_refused_is_taken_back() -> None:
    with running(VLLM) as server:
        backend, _ = served_by(f"{server.root}/v1", "/models/qwen")
        printed = run(backend.name, "--write")
        assert f"backend {backend}: prefix_cache is shared; organization would" in printed
        backend.refresh_from_db()
        assert backend.prefix_cache == "shared"
    with running(replace(VLLM, refused=frozenset({"cache_salt"}))) as server:
        Backend.objects.update(base_url=f"{server.root}/v1", prefix_cache="organization")
        printed = run(backend.name, "--write")
    assert f"backend {backend}: prefix_cache organization -> shared" in printed
    backend.refresh_from_db()
    assert backend.prefix_cache == "shared"


def test_a_promise_that_the_server_does_not_keep_is_told_and_withdrawn_with_write() -> None:
    with running(TRANSFORMERS) as server:
        backend, entry = served_by(
            f"{server.root}/v1", "demo", tool_calling=True, structured_output=True
        )
        price = entry.prices.get()
        assert f"model {entry}: structured_output True -> False" in run(f"{server.root}/v1")
        run(backend.name, "--write")

    entry.refresh_from_db()
    assert (entry.tool_calling, entry.structured_output) == (False, False)
    assert entry.context_length == 32768
    assert entry.prices.get() == price


def test_an_ability_is_not_switched_on_for_weights_that_others_serve_too() -> None:
    with running(OLLAMA) as server:
        backend, entry = served_by(f"{server.root}/v1", "llama3.2:latest", context_length=4096)
        Deployment.objects.create(
            weights=entry.weights, backend=catalog_rows.backend("other"), model="elsewhere"
        )
        printed = run(backend.name, "--write")

    entry.refresh_from_db()
    assert (entry.tool_calling, entry.context_length) == (False, 4096)
    assert f"model {entry}: tool_calling is off; this backend can do it" in printed
    assert "context_length is 4096; the server takes 8192" in printed


def test_a_retired_model_is_left_alone() -> None:
    with running(VLLM) as server:
        entry = catalog_rows.retired("acme/old")
        backend = Backend.objects.get(deployments__weights=entry.weights)
        Backend.objects.filter(pk=backend.pk).update(base_url=f"{server.root}/v1")
        Deployment.objects.filter(backend=backend).update(model="/models/qwen")
        run(backend.name, "--write")

    entry.refresh_from_db()
    assert entry.context_length == 32768


def test_the_key_and_the_headers_of_a_backend_are_sent_and_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_PROBED", "s3cret")
    with running(Dialect(key="s3cret", header="x-provider")) as server:
        catalog_rows.backend(
            "gpu",
            base_url=f"{server.root}/v1",
            api_key_env="SVC_BACKEND_KEY_PROBED",
            headers={"x-provider": "openai"},
        )
        printed = run("gpu") + run(
            f"{server.root}/v1/models",
            "--api-key-env=SVC_BACKEND_KEY_PROBED",
            "--header=x-provider=openai",
            "--json",
        )

    assert "s3cret" not in printed


def test_findings_as_json() -> None:
    with running(VLLM) as server:
        found = json.loads(run(server.root, "--json", "--model", "/models/qwen"))

    assert found["findings"]["models"][0]["context_length"]["value"] == 4096
    assert found["settings"]["running_usage"]["value"] == "vllm"


def test_the_command_fails_when_chat_does_not_work() -> None:
    with running(Dialect(chats=[])) as server, pytest.raises(CommandError, match="chat works with"):
        run(server.root, "--write")
    assert not Backend.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gpu-7"], "There is no backend gpu-7"),
        (["ftp://h/v1"], "Start the address with http"),
        (["http://u:p@h/v1"], "Take the user name and password out"),
        (["http://h/v1", "--header=Authorization=x"], "Leave Authorization out"),
        (["http://h/v1", "--api-key-env=NOT_THERE"], "NOT_THERE"),
        ([f"http://127.0.0.1:{free_port()}"], "cannot connect: Connection refused"),
    ],
)
def test_what_cannot_be_probed_is_told(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        run(*arguments)
