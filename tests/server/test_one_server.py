"""``make run MODEL_SERVER=... MODEL=...``: what is published of the server that it names."""

from __future__ import annotations

import re

import pytest

from inference.models import Backend, Deployment, ModelEntry
from inference.rules import IDENTIFIER
from svc_project.lib.catalog_tables import CatalogFileError
from svc_project.one_server import backend_name, identifier_of, mended_address, publish_server

pytestmark = pytest.mark.django_db
OLLAMA = "http://127.0.0.1:11434/v1"


def test_a_model_is_called_by_the_name_that_its_server_has_for_it() -> None:
    published = publish_server(OLLAMA, "llama3.2", 8192)

    assert published.identifier == "llama3.2"
    entry = ModelEntry.objects.get()
    assert (entry.identifier, entry.context_length) == ("llama3.2", 8192)
    assert entry.published_at is not None
    backend = Backend.objects.get()
    assert (backend.name, backend.base_url) == ("127.0.0.1:11434", OLLAMA)
    assert backend.output_cap_field == "both"
    assert publish_server(OLLAMA, "llama3.2", 8192).changes == []


def test_a_small_context_bounds_the_default_output() -> None:
    publish_server(OLLAMA, "llama3.2", 1024)

    assert ModelEntry.objects.get().default_max_output_tokens == 1024


def test_a_context_that_nobody_said_is_assumed_and_told() -> None:
    published = publish_server(OLLAMA, "llama3.2")

    assert ModelEntry.objects.get().context_length == 32768
    assert "a context of 32768 tokens is assumed; CONTEXT=... says another" in published.changes


def test_a_path_gets_an_identifier_and_is_what_the_server_is_asked_for() -> None:
    published = publish_server("http://10.0.0.5:8000/v1", "/models/tiny llama")

    assert published.identifier == ModelEntry.objects.get().identifier == "tiny-llama"
    assert Deployment.objects.get().model == "/models/tiny llama"
    assert any("callers send tiny-llama" in change for change in published.changes)


@pytest.mark.parametrize(
    ("model", "identifier"),
    [
        ("llama3.2", "llama3.2"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("hf.co/acme/demo:Q4_K_M", "hf.co/acme/demo:Q4_K_M"),
        ("/models/x", "x"),
        ("/models/x/", "x"),
        ("./x.gguf", "x.gguf"),
        ("~/models/x", "x"),
        ("C:\\models\\x.gguf", "x.gguf"),
        ("acme//_demo", "acme/demo"),
        ("ein Modell", "ein-Modell"),
        ("/", "model"),
        ("a" * 300, "a" * 200),
    ],
)
def test_every_name_has_a_well_formed_identifier(model: str, identifier: str) -> None:
    assert identifier_of(model) == identifier
    assert re.search(IDENTIFIER, identifier)


def test_servers_side_by_side_keep_their_models() -> None:
    publish_server(OLLAMA, "llama3.2")
    publish_server("http://127.0.0.1:8080/v1", "qwen")

    served = {row.model: row.backend.base_url for row in Deployment.objects.filter(enabled=True)}
    assert served == {"llama3.2": OLLAMA, "qwen": "http://127.0.0.1:8080/v1"}


def test_a_model_that_moves_is_told() -> None:
    publish_server(OLLAMA, "llama3.2")
    changes = publish_server("http://10.0.0.5:11434/v1", "llama3.2").changes

    assert any("switched off deployment llama3.2 on 127.0.0.1:11434" in each for each in changes)


def test_an_address_without_a_path_gets_one_and_another_is_explained() -> None:
    changes = publish_server("http://127.0.0.1:11434", "llama3.2").changes
    assert Backend.objects.get().base_url == OLLAMA
    assert f"the address ends in /v1 on such servers: {OLLAMA} is used" in changes

    changes = publish_server("https://models.example/v1beta/openai", "gem").changes
    assert any("does not end in /v1" in change for change in changes)
    assert mended_address("http://h:1/") == "http://h:1/v1"


def test_two_servers_behind_one_host_have_two_names() -> None:
    assert backend_name("https://h/a/v1") == "h/a"
    assert backend_name("https://h/b/v1/") == "h/b"
    assert backend_name("http://[::1]:8080/v1") == "[::1]:8080"


@pytest.mark.parametrize("address", ["127.0.0.1:11434", "ftp://h/v1", "http://u:p@h/v1", 'a"\n'])
def test_an_address_that_cannot_be_used_is_refused(address: str) -> None:
    with pytest.raises(CatalogFileError, match="base_url"):
        publish_server(address, "llama3.2")
    assert not Backend.objects.exists()
