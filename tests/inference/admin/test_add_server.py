"""The page that adds a server: what it finds, what it publishes, and what it says is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry
from inference.models import Backend, Deployment, ModelEntry, Price, WeightsRecord
from inference.probe.publishing import RIGHTS
from tests.support.builders import catalog_rows
from tests.support.model_servers.dialects import TRANSFORMERS, VLLM, DialectServer, running
from tests.support.pages.admin_forms import logged_in, text_of
from tests.support.pages.admin_forms import operator as operator_with

pytestmark = pytest.mark.django_db

PAGE = "/admin/inference/backend/add-server/"
PRICED = {"model0-input_per_mtok": "0.15", "model0-output_per_mtok": "0.6"}


@pytest.fixture
def vllm() -> Iterator[DialectServer]:
    with running(VLLM) as server:
        yield server


def checked(client: Client, server: DialectServer, **given: str) -> Any:
    """The page with what a check of ``server`` found."""
    answer = client.post(PAGE, {"base_url": server.root, **given})
    assert answer.status_code == 200
    return answer


def form_of(answer: Any) -> dict[str, Any]:
    """What a browser sends back of the second page."""
    found = {"found": answer.context["found"], "currency": "USD"}
    for form in answer.context["models"]:
        for bound in form:
            if bound.value() not in (None, False):
                found[bound.html_name] = bound.value()
    return found


def test_what_is_found_is_shown_and_nothing_is_changed_before_it_is_published(
    operator: Client, vllm: DialectServer
) -> None:
    answer = checked(operator, vllm, name="gpu-1")

    page = text_of(answer)
    assert "tool calls: yes; JSON schemas: yes; token usage: yes" in page
    assert "It becomes the backend gpu-1." in page
    assert "usage on every chunk, by continuous_usage_stats" in page
    assert form_of(answer)["model0-context_length"] == 4096
    assert form_of(answer)["model0-identifier"] == "qwen"
    assert not Backend.objects.exists()


def test_publishing_makes_and_audits_every_row(operator: Client, vllm: DialectServer) -> None:
    answer = checked(operator, vllm, name="gpu-1")

    done: Any = operator.post(PAGE, {**form_of(answer), **PRICED})

    entry = ModelEntry.objects.get(identifier="qwen")
    assert done.url == f"/admin/inference/modelentry/{entry.pk}/change/"
    assert (entry.context_length, entry.tool_calling) == (4096, True)
    price = entry.prices.get()
    assert (price.input_per_mtok, price.output_per_mtok) == (Decimal("0.15"), Decimal("0.6"))
    backend = Backend.objects.get(name="gpu-1")
    assert (backend.base_url, backend.running_usage) == (f"{vllm.root}/v1", "vllm")
    assert Deployment.objects.get(backend=backend).model == "/models/qwen"
    entries = AuditEntry.objects.exclude(kind="user").values_list("kind", "verb", "actor", "source")
    assert {(kind, verb) for kind, verb, *_ in entries} == {
        ("backend", "tested"),
        ("backend", "created"),
        ("weights record", "created"),
        ("deployment", "created"),
        ("model", "created"),
        ("price", "appended"),
        ("model", "published"),
    }
    assert {each[2:] for each in entries} == {("op@example.com", "admin")}


def counted() -> tuple[int, int, int]:
    return Backend.objects.count(), WeightsRecord.objects.count(), Price.objects.count()


MISSING: dict[str, tuple[dict[str, str], list[str]]] = {
    "prices": ({}, ["the price of input is missing", "the price of output is missing"]),
    "all at once": (
        {
            **PRICED,
            "model0-identifier": "a b",
            "model0-context_length": "",
            "model0-output_per_mtok": "-1",
            "currency": "Euro",
        },
        ["identifier: Use at most", "context length", "price of output: Ensure", "at most 3 char"],
    ),
    "a model": ({**PRICED, "model0-publish": ""}, ["No model is selected."]),
    "a free name": (PRICED, ["A backend at another address is called gpu-1"]),
    "an identifier that is not retired": (
        {**PRICED, "model0-identifier": "old"},
        ["old is retired"],
    ),
}
"""What is sent, and what is said to be missing."""


@pytest.mark.parametrize("name", MISSING)
def test_all_that_is_missing_is_said_at_once_with_a_link_and_nothing_is_made(
    operator: Client, vllm: DialectServer, name: str
) -> None:
    changed, said = MISSING[name]
    if name == "a free name":
        Backend.objects.create(name="gpu-1", base_url="http://10.0.0.1/v1")
    if name == "an identifier that is not retired":
        catalog_rows.retired("old")
    before = counted()
    answer = checked(operator, vllm, name="gpu-1")

    page = operator.post(PAGE, {**form_of(answer), **changed})

    html = page.content.decode()
    listed = html[html.index('id="missing"') :].partition("</div>")[0]
    for words in said:
        assert words in listed
    for anchor in re.findall(r'href="#([^"]+)"', listed):
        assert f'id="{anchor}"' in html
    assert listed.count("<li>") == listed.count("<a href")
    assert counted() == before


def test_a_model_that_others_serve_gets_the_server_too_and_keeps_everything(
    operator: Client, vllm: DialectServer
) -> None:
    entry = catalog_rows.published("qwen")
    other = Deployment.objects.get(weights=entry.weights)
    answer = checked(operator, vllm)
    assert "it gets this server too, and keeps its own settings" in text_of(answer)

    operator.post(PAGE, {**form_of(answer), **PRICED, "model0-context_length": "1"})

    other.refresh_from_db()
    assert other.enabled
    assert Deployment.objects.filter(weights=entry.weights, enabled=True).count() == 2
    again = ModelEntry.objects.get(identifier="qwen")
    assert (again.context_length, again.prices.count()) == (entry.context_length, 1)


def test_a_backend_that_the_catalog_has_stays_as_it_is(
    operator: Client, vllm: DialectServer
) -> None:
    Backend.objects.create(name="gpu-1", base_url=f"{vllm.root}/v1", max_concurrency=3)

    answer = checked(operator, vllm, name="another")
    operator.post(PAGE, {**form_of(answer), **PRICED})

    backend = Backend.objects.get()
    assert (backend.name, backend.max_concurrency, backend.running_usage) == ("gpu-1", 3, "auto")
    assert Deployment.objects.get().backend == backend


def test_a_server_that_cannot_be_used_is_said_in_words(operator: Client) -> None:
    away = text_of(operator.post(PAGE, {"base_url": "http://127.0.0.1:1"}))
    assert "Chat works with no model of this server." in away
    assert "Connection refused" in away
    refused = text_of(operator.post(PAGE, {"base_url": "ftp://x", "api_key_env": "SECRET_KEY"}))
    assert "Start the address with http:// or https://." in refused
    assert "SECRET_KEY is a setting of the gateway" in refused
    many = ",".join(map(str, range(17)))
    assert "Name at most 16 models" in text_of(
        operator.post(PAGE, {"base_url": "http://127.0.0.1:1", "models": many})
    )
    with running(replace(TRANSFORMERS, chats=())) as server:
        assert "does not support chat" in text_of(checked(operator, server))


def test_only_who_may_make_all_of_it_may_ask_a_server_or_publish(vllm: DialectServer) -> None:
    right = logged_in(operator_with(*RIGHTS))
    found = form_of(checked(right, vllm))
    for lacking in RIGHTS:
        others = [each for each in RIGHTS if each != lacking]
        client = logged_in(operator_with(*others, email=f"{lacking}@northwind.example"))
        assert client.post(PAGE, {"base_url": vllm.root}).status_code == 403
        assert client.post(PAGE, {**found, **PRICED}).status_code == 403
    second = logged_in(operator_with(*RIGHTS, email="second@northwind.example"))
    assert second.post(PAGE, {**found, **PRICED}).status_code == 302, "it is asked to check again"
    assert not Backend.objects.exists()
    right.post(PAGE, {**found, **PRICED})
    assert Backend.objects.exists()
