"""The reference has every operation of the OpenAPI documents, with code that runs."""

from __future__ import annotations

import html
import re
import sys
from typing import Any

import httpx2
import pytest
from django.test import Client

from accounts.models import Scope
from core.errors import name_of
from svc_project.openapi import DOCUMENTS
from svc_project.reference import pages
from svc_project.reference.error_guide import SECTIONS
from svc_project.reference.fields import SchemaReader, bounds_of
from svc_project.surfaces import Surface
from tests.support.live import Gateway, run
from tests.support.pages.console import words

every = pytest.mark.parametrize("surface", DOCUMENTS)
PATHS = ("/docs/", *(f"/docs/{name}/" for name in DOCUMENTS), "/docs/errors/")


def reference(client: Client, surface: str) -> str:
    answer = client.get(f"/docs/{surface}/")
    assert answer.status_code == 200
    return answer.content.decode()


def operation(page: str, operation_id: str) -> str:
    found = re.search(rf'<article[^>]* id="{operation_id}".*?</article>', page, re.DOTALL)
    assert found is not None, operation_id
    return found[0]


def code(page: str, operation_id: str, language: str) -> str:
    """An example as it is shown."""
    found = re.search(rf'id="{operation_id}-{language}-code"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found is not None, f"{operation_id} {language}"
    return html.unescape(found[1])


@every
def test_every_operation_is_shown_with_three_examples(client: Client, surface: str) -> None:
    page = reference(client, surface)

    for path, methods in DOCUMENTS[surface]()["paths"].items():
        for method, source in methods.items():
            shown = operation(page, source["operationId"])
            assert words(shown).startswith(f"{method.upper()} {path} {source['summary']}.")
            for language in ("curl", "python", "javascript"):
                example = code(page, source["operationId"], language)
                assert path.split("{")[0].partition("/v1")[2] in example or "openai" in example


@every
def test_every_field_and_parameter_is_shown(client: Client, surface: str) -> None:
    page = reference(client, surface)
    document = DOCUMENTS[surface]()
    reader = SchemaReader(document["components"]["schemas"])

    for methods in document["paths"].values():
        for source in methods.values():
            shown = operation(page, source["operationId"])
            names = [each["name"] for each in source.get("parameters", ())]
            body = source.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                names += reader.resolved(body["schema"])["properties"]
            for name in names:
                assert f'<code class="field-name">{name}</code>' in shown


def test_a_field_has_its_type_its_bounds_and_whether_it_is_required(client: Client) -> None:
    said = words(operation(reference(client, Surface.INFERENCE), "createChatCompletion"))

    assert "model string, at least 1 character required" in said
    assert "temperature number, 0 to 2" in said
    assert "messages[].role string required system , developer , user , assistant , tool" in said
    assert "messages[].tool_call_id string required role tool" in said
    assert "tools[].function.name string, matches ^[A-Za-z0-9_.-]{1,64}$ required" in said


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"minimum": 1}, "at least 1"),
        ({"maximum": 9}, "at most 9"),
        ({"minimum": 0, "maximum": 2}, "0 to 2"),
        ({"minimum": 1, "maximum": 2**63 - 1}, "64 bits, at least 1"),
        ({"minItems": 1, "maxItems": 1}, "exactly 1 item"),
        ({"maxLength": 4096}, "at most 4,096 characters"),
        ({"type": "integer", "default": 1000}, "default 1000"),
        ({}, ""),
    ],
)
def test_bounds_in_words(schema: dict[str, Any], said: str) -> None:
    assert bounds_of(schema) == said


def test_a_schema_that_contains_itself_ends() -> None:
    reader = SchemaReader({"Node": {"properties": {"next": {"$ref": "#/components/schemas/Node"}}}})

    fields = reader.fields({"$ref": "#/components/schemas/Node"})

    assert [each.name for each in fields][:2] == ["next", "next.next"]
    assert len(fields) < 20


@every
def test_every_failure_leads_to_its_explanation(client: Client, surface: str) -> None:
    explained = client.get("/docs/errors/").content.decode()
    page = reference(client, surface)

    places = set(re.findall(r'href="/docs/errors/#([^"]+)"', page))
    assert len(places) > 5
    assert [place for place in places if f'id="{place}"' not in explained] == []
    if surface == Surface.INFERENCE:
        errors = [error for section in SECTIONS.values() for error in section]
        codes = {name_of(each) for each in errors if each.code and "Disc" not in each.__name__}
        assert codes <= places


@pytest.mark.parametrize("path", PATHS)
def test_pages_need_no_session_no_query_and_no_other_host(
    client: Client, path: str, db: None, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        answer = client.get(path)

    page = answer.content.decode()
    assert "default-src 'none'" in answer["content-security-policy"]
    assert not re.search(r"<script(?! src=\"/static/)|<style| style=| on\w+=", page)
    assert re.findall(r'(?:src|href)="(?:https?:)?//', page) == []
    assert ".invalid" not in page


def test_a_page_is_rendered_once_for_all_hosts(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    pages._rendered.cache_clear()
    first = client.get("/docs/inference/", headers={"host": "one.example"}).content.decode()
    monkeypatch.setattr(pages, "render_to_string", lambda *_: pytest.fail("rendered again"))
    second = client.get("/docs/inference/", headers={"host": "two.example:81"}).content.decode()

    assert "http://one.example/v1/chat/completions" in first
    assert "http://two.example:81/v1/chat/completions" in second
    assert "one.example" not in second


def test_only_reading_methods_are_taken(client: Client) -> None:
    assert client.post("/docs/errors/").status_code == 405
    assert client.head("/docs/errors/").status_code == 200
    assert client.get("/docs/nothing/").status_code == 404


def test_the_console_leads_to_the_docs(console: Client) -> None:
    assert '<a href="/docs/">Docs</a>' in console.get("/console/keys").content.decode()


def test_the_examples_run_against_the_gateway(gateway: Gateway) -> None:
    """Python's examples without a body, whose keys and addresses are those of the page."""
    page = httpx2.get(f"{gateway.url}/docs/inference/").text
    read_key = gateway.mint(Scope.READ)
    for operation_id, printed in {
        "listModels": "acme/demo-8b",
        "getModel": "acme/demo-8b",
        "getUsage": "breakdowns",
        "exportUsage": "next_cursor",
    }.items():
        source = code(page, operation_id, "python").replace("MODEL", "acme/demo-8b")
        environment = {"SVC_API_KEY": read_key, "NO_PROXY": "127.0.0.1"}
        done = run(sys.executable, "-c", source, environment=environment)
        assert printed in done.stdout, done.stderr
