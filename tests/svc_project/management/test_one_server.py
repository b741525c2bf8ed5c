"""``make run MODEL_SERVER=...``: the models that it publishes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from inference.catalog.pricing import ensure_price
from inference.models import Backend, Deployment, ModelEntry
from inference.models.catalog import IDENTIFIER
from inference.probe.findings import Found, ModelFindings, ServerFindings
from inference.probe.publishing import backend_name, identifier_of, identifiers_of
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from svc_project.management.one_server import (
    NothingToServe,
    Published,
    publish,
    publish_servers,
)
from tests.support.model_servers.dialects import OLLAMA, TRANSFORMERS, VLLM, Dialect, running

OLLAMA_ADDRESS = "http://127.0.0.1:11434/v1"
YES: Found[bool] = Found(True, "")
WORKING = ModelFindings(
    name="llama3.2",
    chat=YES,
    stream=YES,
    usage=YES,
    output_cap=Found(OutputCapField.BOTH, ""),
    running_usage=Found(RunningUsage.NONE, ""),
    prefix_cache=Found(None, ""),
    tool_calling=YES,
    structured_output=YES,
    context_length=Found(8192, ""),
    abort=YES,
)


def server(address: str = OLLAMA_ADDRESS, *names: str, **findings: Any) -> ServerFindings:
    """The findings about a server whose models all work as ``WORKING``, except for ``findings``."""
    models = [replace(WORKING, name=name, **findings) for name in names or ("llama3.2",)]
    return ServerFindings(
        base_url=address,
        connection=Found(True, f"it answers at {address}"),
        listing=YES,
        listed=[model.name for model in models],
        keep_alive=Found(KeepAlive.AUTO, ""),
        models=models,
    )


def published(*servers: ServerFindings, context: int | None = None) -> Published:
    return publish(servers, context_length=context)


@pytest.mark.django_db
def test_a_model_is_called_by_the_name_that_its_server_has_for_it() -> None:
    said = published(server())

    assert said.identifiers == ["llama3.2"]
    entry = ModelEntry.objects.get()
    assert (entry.identifier, entry.context_length) == ("llama3.2", 8192)
    assert entry.published_at is not None
    backend = Backend.objects.get()
    assert (backend.name, backend.base_url) == ("127.0.0.1:11434", OLLAMA_ADDRESS)
    assert not any("created" in line for line in published(server()).lines)


@pytest.mark.django_db
def test_a_small_context_bounds_the_default_output() -> None:
    published(server(context_length=Found(1024, "")))

    assert ModelEntry.objects.get().default_max_output_tokens == 1024


@pytest.mark.django_db
def test_an_unknown_context_is_assumed_and_reported() -> None:
    unknown = server(context_length=Found(None, ""))

    assumed = "llama3.2: a context of 32768 tokens is assumed; CONTEXT=... says another"
    assert assumed in published(unknown).lines
    assert ModelEntry.objects.get().context_length == 32768
    assert assumed not in published(unknown, context=2048).lines
    assert ModelEntry.objects.get().context_length == 2048


@pytest.mark.django_db
def test_a_price_that_the_operator_has_set_since_stays() -> None:
    published(server())
    ensure_price(ModelEntry.objects.get(), "0.15", "0.60", "EUR")
    published(server())

    assert ModelEntry.objects.get().prices.count() == 2


@pytest.mark.django_db
def test_a_path_gets_an_identifier_and_is_sent_to_the_server() -> None:
    said = published(server(OLLAMA_ADDRESS, "/models/tiny llama"))

    assert said.identifiers == [ModelEntry.objects.get().identifier] == ["tiny-llama"]
    assert Deployment.objects.get().model == "/models/tiny llama"
    assert any("callers send tiny-llama" in line for line in said.lines)


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


def test_no_two_models_have_one_identifier() -> None:
    names = ["/a/x", "/b/x", "x", "a b", "a-b", "a" * 201, "a" * 202]

    identifiers = identifiers_of(names)

    assert identifiers["/a/x"] == "x"
    assert identifiers["/b/x"] == "b/x"
    assert len(set(identifiers.values())) == len(names)
    assert all(re.search(IDENTIFIER, identifier) for identifier in identifiers.values())


@pytest.mark.django_db
def test_a_model_of_two_servers_has_the_abilities_that_both_have() -> None:
    other = "http://127.0.0.1:8080/v1"
    weaker = server(
        other, "llama3.2", "qwen", context_length=Found(2048, ""), tool_calling=Found(False, "")
    )

    said = published(server(), weaker)

    assert said.identifiers == ["llama3.2", "qwen"]
    shared = ModelEntry.objects.get(identifier="llama3.2")
    assert (shared.context_length, shared.tool_calling, shared.structured_output) == (
        2048,
        False,
        True,
    )
    served = Deployment.objects.filter(enabled=True).values_list("model", "backend__base_url")
    assert set(served) == {("llama3.2", OLLAMA_ADDRESS), ("llama3.2", other), ("qwen", other)}


@pytest.mark.django_db
def test_another_server_later_takes_nothing_from_the_first() -> None:
    published(server())
    published(server("http://127.0.0.1:8080/v1", "qwen"))

    served = Deployment.objects.filter(enabled=True).values_list("model", flat=True)
    assert set(served) == {"llama3.2", "qwen"}


@pytest.mark.django_db
def test_a_moved_model_is_reported() -> None:
    published(server())
    lines = published(server("http://10.0.0.5:11434/v1")).lines

    assert any("switched off deployment llama3.2 on 127.0.0.1:11434" in each for each in lines)


def test_two_servers_behind_one_host_have_two_names() -> None:
    assert backend_name("https://h/a/v1") == "h/a"
    assert backend_name("https://h/b/v1/") == "h/b"
    assert backend_name("http://[::1]:8080/v1") == "[::1]:8080"


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["127.0.0.1:11434", "ftp://h/v1", "http://u:p@h/v1", 'a"\n'])
def test_an_address_that_cannot_be_used_is_refused(address: str) -> None:
    with pytest.raises(NothingToServe, match=re.escape(f"{address}: ")):
        publish_servers([address])
    assert not Backend.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_several_servers_are_probed_and_working_models_are_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SVC_BACKEND_KEY_MODEL_SERVER", "k")
    nobody = "http://127.0.0.1:1"  # a port that nothing listens on
    with running(VLLM) as vllm, running(replace(OLLAMA, key="k")) as ollama:
        said = publish_servers([vllm.root, nobody, f"{ollama.root}/v1"])

    assert said.identifiers == ["qwen", "llama3.2:latest"]
    assert any(nobody in line and "Connection refused" in line for line in said.lines)
    backends = {row.base_url: row for row in Backend.objects.all()}
    assert set(backends) == {f"{vllm.root}/v1", f"{ollama.root}/v1"}
    assert backends[f"{vllm.root}/v1"].running_usage == "vllm"
    assert {row.api_key_env for row in backends.values()} == {"SVC_BACKEND_KEY_MODEL_SERVER"}
    contexts = ModelEntry.objects.values_list("identifier", "context_length")
    assert set(contexts) == {("qwen", 4096), ("llama3.2:latest", 8192)}


@pytest.mark.django_db
def test_missing_abilities_are_reported_and_not_published() -> None:
    with running(TRANSFORMERS) as transformers:
        said = publish_servers([transformers.root], ["demo"])

    entry = ModelEntry.objects.get()
    assert (entry.tool_calling, entry.structured_output) == (False, False)
    assert "    JSON schemas: no, the answer does not fit the schema" in said.lines


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("dialect", "models", "words"),
    [
        (Dialect(chats=[]), [], "No model works"),
        (
            Dialect(key="k"),
            [],
            "it requires an API key.*SVC_BACKEND_KEY_MODEL_SERVER=... gives one",
        ),
        (Dialect(chats=["demo"]), ["demo", "x"], "cannot be served|can be served: x.*list: demo"),
    ],
    ids=["none chats", "key", "no such model"],
)
def test_nothing_is_published_when_something_is_missing(
    dialect: Dialect, models: list[str], words: str
) -> None:
    with (
        running(dialect) as none,
        pytest.raises(NothingToServe, match=re.compile(words, re.DOTALL)),
    ):
        publish_servers([none.root], models)
    assert not Backend.objects.exists()
