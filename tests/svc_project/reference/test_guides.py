"""Guides are Markdown of the repository, with this gateway's addresses and the reader's names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from inference.catalog import lifecycle
from svc_project.openapi import DOCUMENTS
from svc_project.reference.guides import GUIDES, place_of
from svc_project.reference.markdown import render
from tests.support.builders import catalog_rows
from tests.support.pages.console import words

DOCS = (
    "/docs/",
    *(f"/docs/guides/{name}" for name in GUIDES),
    *(f"/docs/{name}/" for name in DOCUMENTS),
    "/docs/errors/",
)


def page_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def published(identifier: str, input_price: str) -> None:
    """A model with tools and structured output."""
    entry = catalog_rows.draft(identifier, tool_calling=True, structured_output=True)
    catalog_rows.price(entry, input_per_mtok=input_price)
    catalog_rows.deployed(entry)
    lifecycle.publish(entry)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_served_under_its_title(client: Client, name: str) -> None:
    page = page_of(client, f"/docs/guides/{name}")

    assert page.count("<h1") == 1
    assert "127.0.0.1:800" not in page
    assert "demo-8b" not in page


def test_links_and_anchors_of_all_pages_lead_somewhere(client: Client) -> None:
    """Links to pages of the docs, with their anchors; those to the console need a session."""
    pages = {path: page_of(client, path) for path in DOCS}
    anchors = {path: re.findall(r'\bid="([^"]+)"', page) for path, page in pages.items()}

    assert [path for path, found in anchors.items() if len(found) != len(set(found))] == []
    for path, page in pages.items():
        for target in re.findall(r'href="(/docs/[^"]*|#[^"]*)"', page):
            place, _, anchor = target.partition("#")
            if anchor:
                assert anchor in anchors[place or path], f"{path}: {target}"
            elif place not in pages:
                assert client.get(place).status_code == 200, f"{path}: {target}"


def test_markdown_is_no_way_for_html_and_foreign_schemes() -> None:
    text = render("# T\n\n<b onclick=x>a</b> [x](javascript:alert)\n\n## P `<i>`\n", lambda _: None)

    assert "<b" not in text.html
    assert 'href="javascript' not in text.html
    assert '<h2 id="p-i">P <code>&lt;i&gt;</code>' in text.html


def test_what_is_not_served_is_no_link() -> None:
    assert place_of("docs/connect-defaults.md", "operate/catalog.md#models") is None
    assert place_of("docs/guides/tools.md", "../api/inference.md#errors") == "/docs/errors/"
    assert (
        place_of("docs/guides/tools.md", "../api/schema-subset.md#rules")
        == "/docs/guides/schema-subset#rules"
    )


def test_a_member_reads_the_own_model_and_can_try_it(console: Client) -> None:
    published("northwind/dear", "1.10")
    published("northwind/cheap", "0.10")
    catalog_rows.published("northwind/cheapest-without-tools")

    guide = page_of(console, "/docs/guides/quick-start")
    assert "northwind/cheap" in guide
    assert 'href="/console/playground?model=northwind/cheap"' in guide
    assert "northwind/cheap" in page_of(console, "/docs/inference/")

    models = words(page_of(console, "/docs/models/"))
    assert "northwind/dear active 1.10 USD 0.60 USD" in models


def test_a_stranger_sees_no_model(client: Client, db: None) -> None:
    published("northwind/cheap", "0.10")

    for path in (*DOCS, "/docs/models/", "/docs/search?q=stop"):
        assert "northwind" not in page_of(client, path), path
    assert "Sign in to see them" in page_of(client, "/docs/models/")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_openapi_documents_are_files_to_download(client: Client, name: str) -> None:
    answer = client.get(f"/docs/openapi-{name}.json")

    assert answer["content-disposition"] == f'attachment; filename="openapi-{name}.json"'
    assert answer.json() == DOCUMENTS[name]()


@pytest.mark.parametrize(
    ("query", "title", "place"),
    [
        ("temperature", "temperature", "/docs/inference/#createChatCompletion-temperature"),
        ("MODEL_retired", "model_retired", "/docs/errors/#model_retired"),
        ("limits retries", "Limits and retries", "/docs/guides/limits"),
        ("keep alive comments", "Long silences", "/docs/guides/streaming#long-silences"),
        ("4429", "4429", "/docs/errors/#closes"),
    ],
)
def test_search_leads_to_the_place(client: Client, query: str, title: str, place: str) -> None:
    found: list[dict[str, Any]] = client.get("/docs/search", {"q": query, "format": "json"}).json()[
        "found"
    ]

    assert (found[0]["title"], found[0]["href"]) == (title, place)
    assert f'href="{place}"' in page_of(client, f"/docs/search?q={query}")


def test_a_field_that_says_the_same_in_many_operations_is_found_once(client: Client) -> None:
    found = client.get("/docs/search", {"q": "expires_at null is never", "format": "json"}).json()

    [keys] = [each for each in found["found"] if each["title"] == "expires_at"]
    assert keys["where"] == "POST /manage/v1/keys and 7 more"


def test_search_takes_any_text(client: Client) -> None:
    for query in ("", "   ", "x" * 10_000, "<script>", "\0", "nothing has this"):
        answer = client.get("/docs/search", {"q": query})
        assert answer.status_code == 200
        assert "<script>" not in answer.content.decode().replace('<script src="/static', "")
    assert "Nothing has all of these words" in page_of(client, "/docs/search?q=qwertz")
