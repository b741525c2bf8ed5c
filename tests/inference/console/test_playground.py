"""The playground's page, its check of what is typed, and its receipts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Organization, User
from tests.support.builders import catalog_rows
from tests.support.pages.console import Insert, words

MESSAGES = [{"role": "user", "content": "It's 5 o'clock"}]


@pytest.fixture
def model(db: None) -> str:
    return catalog_rows.published(
        "acme/demo-8b", tool_calling=True, structured_output=True
    ).identifier


def check(console: Client, body: Any) -> dict[str, Any]:
    content = body if isinstance(body, str) else json.dumps(body)
    answer = console.post("/console/playground/check", content, content_type="application/json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def schema_body(model: str, schema: Any) -> dict[str, Any]:
    named = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return {"model": model, "messages": MESSAGES, "response_format": named}


def test_the_page_offers_models_that_serve_and_takes_one_from_the_address(
    console: Client, model: str
) -> None:
    catalog_rows.retired("acme/gone")
    catalog_rows.published("acme/other")

    page = console.get("/console/playground?model=acme/other").content.decode()

    assert 'data-asked="acme/other"' in page
    assert "<option>acme/demo-8b</option>" in page
    assert "acme/gone<" not in page


def test_a_valid_request_has_no_problem_and_is_shown_as_code(console: Client, model: str) -> None:
    found = check(console, {"model": model, "messages": MESSAGES, "stream": True})

    assert found["problems"] == []
    assert set(found["snippets"]) == {"curl", "python", "javascript"}
    assert "curl -N http://testserver/v1/chat/completions" in found["snippets"]["curl"]
    assert "stream=True" in found["snippets"]["python"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"model": "acme/nothing"}, "model"),
        ({"messages": []}, "messages"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 999_999_999}, "max_tokens"),
    ],
)
def test_the_first_wrong_field_is_named(
    console: Client, model: str, fields: dict[str, Any], param: str
) -> None:
    found = check(console, {"model": model, "messages": MESSAGES, **fields})

    (problem,) = found["problems"]
    assert problem["param"] == param
    assert problem["message"]


def test_every_violation_of_the_schema_subset_is_listed(console: Client, model: str) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 1}},
        "additionalProperties": True,
    }

    problems = check(console, schema_body(model, schema))["problems"]

    assert {each["param"] for each in problems} == {"response_format"}
    assert "/properties/age/minimum" in {each["pointer"] for each in problems}
    assert len(problems) > 1


def test_a_model_without_the_ability_says_so(console: Client) -> None:
    catalog_rows.published("acme/plain")
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

    problems = check(console, schema_body("acme/plain", schema))["problems"]

    assert [each["param"] for each in problems] == ["response_format"]
    assert "acme/plain" in problems[0]["message"]


@pytest.mark.parametrize("body", ["", "[1]", "{", '{"model": NaN}'])
def test_a_body_that_is_no_object_is_a_problem_and_no_code(console: Client, body: str) -> None:
    found = check(console, body)

    assert len(found["problems"]) == 1
    assert found["snippets"] == {}


def test_the_check_needs_the_token_of_the_page(person: User, model: str) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)

    answer = strict.post("/console/playground/check", "{}", content_type="application/json")

    assert answer.status_code == 403


def test_a_receipt_shows_exact_figures_of_own_requests_only(
    console: Client, insert: Insert, stranger: Organization
) -> None:
    row = insert(
        "2026-11-05T10:00:00",
        backend_reported_input_tokens=1234,
        backend_reported_output_tokens=56,
        time_to_first_token_ms=87,
        total_duration_ms=1187,
    )
    foreign = insert("2026-11-05T10:00:00", organization_id=str(stranger.pk))

    answer = console.get(f"/console/playground/receipts/{row.request_id}")

    said = words(answer.content.decode())
    assert "Input 1,234 tokens" in said
    assert "Cost 0.0008765 USD" in said
    assert "0.00087645801896 USD" in answer.content.decode()
    assert "First token 87 ms Speed 50.0 tokens/s" in said
    assert console.get(f"/console/playground/receipts/{foreign.request_id}").status_code == 404
