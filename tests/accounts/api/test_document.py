"""Each call of the management API: its answer is what the OpenAPI document says, field by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from accounts.keys import keys
from accounts.models import Organization, Scope, User
from svc_project.openapi import DOCUMENTS
from svc_project.openapi_consumers import MANAGEMENT
from tests.support.builders import catalog_rows

pytestmark = pytest.mark.django_db
DOCUMENT = DOCUMENTS[MANAGEMENT]()
ORGANIZATION = {
    "plan": "enterprise",
    "priority": "batch",
    "diagnostic_captures": False,
    "requests_per_minute": 5,
    "tokens_per_minute": "unlimited",
    "speech_requests_per_minute": 7,
    "speech_characters_per_day": 9,
    "disabled": False,
}
KEY = {
    "label": "ci",
    "requests_per_minute": 5,
    "tokens_per_minute": None,
    "priority": "interactive",
    "expires_at": "2099-01-01T00:00:00Z",
}
CALLS: list[tuple[str, str, Any, int]] = [
    ("GET", "organizations", None, 200),
    ("GET", "organizations/Acme", None, 200),
    ("PUT", "organizations/Blue", ORGANIZATION, 201),
    ("PUT", "organizations/Acme", ORGANIZATION, 200),
    ("PATCH", "organizations/Acme", ORGANIZATION, 200),
    ("DELETE", "organizations/Acme", None, 200),
    ("GET", "users", None, 200),
    ("GET", "users/ada@acme.example", None, 200),
    ("PUT", "users/bo@acme.example", {"organizations": ["Acme"], "active": True}, 201),
    ("PUT", "users/ada@acme.example", {"owner_of": ["Acme"], "active": True}, 200),
    ("PATCH", "users/ada@acme.example", {"organizations": [], "owner_of": [], "active": True}, 200),
    ("DELETE", "users/ada@acme.example", None, 200),
    ("POST", "users/ada@acme.example/link", None, 201),
    ("GET", "keys?organization=Acme", None, 200),
    ("POST", "keys", {"organization": "Acme", "scope": "read", **KEY}, 201),
    ("POST", "keys", {"organization": "Acme", "scope": "inference", "label": "shop"}, 200),
    ("GET", "keys/{api_key_id}", None, 200),
    ("PATCH", "keys/{api_key_id}", KEY, 200),
    ("DELETE", "keys/{api_key_id}", None, 200),
    ("POST", "keys/{api_key_id}/rotate", {"overlap_seconds": 60}, 201),
    ("GET", "catalog", None, 200),
    ("PUT", "catalog", {"voices": [{"id": "leo", "engine_voice": "en"}]}, 200),
    ("GET", "prices?model=acme/demo-8b", None, 200),
]
"""Method, path, body and status of success; together they have every operation and its every member."""


@pytest.fixture
def stored(organization: Organization) -> Callable[[str], str]:
    """Makes what the calls name; returns a function that fills the id of the key in."""
    user = User.objects.create_user("ada@acme.example")
    user.memberships.create(organization=organization)
    api_key = keys.mint(organization, Scope.INFERENCE, "shop").api_key
    catalog_rows.published("acme/demo-8b")
    return lambda path: path.replace("{api_key_id}", str(api_key.pk))


def operation_of(method: str, path: str) -> dict[str, Any]:
    asked = "/manage/v1/" + path.partition("?")[0]
    matching = [
        operations
        for template, operations in DOCUMENT["paths"].items()
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), asked)
    ]
    assert len(matching) == 1, asked
    found: dict[str, Any] = matching[0][method.lower()]
    return found


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def undocumented(value: Any, schema: Any, where: str = "") -> Iterator[str]:
    """The members of ``value`` that ``schema`` does not name."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice and value is not None:
            yield from undocumented(value, choice, where)
    if isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name not in schema["properties"]:
                yield f"{where}.{name}"
            else:
                yield from undocumented(member, schema["properties"][name], f"{where}.{name}")
    elif isinstance(value, list):
        for member in value:
            yield from undocumented(member, schema["items"], f"{where}[]")


@pytest.mark.parametrize(("method", "path", "body", "status"), CALLS)
def test_an_answer_is_as_documented(
    ask: Any, stored: Callable[[str], str], method: str, path: str, body: Any, status: int
) -> None:
    operation = operation_of(method, path)
    if body is not None:
        validator(operation["requestBody"]["content"]["application/json"]["schema"]).validate(body)
    answer = ask(method, stored(path), body)
    assert answer.status_code == status, answer.content
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    validator(schema).validate(answer.json())
    assert list(undocumented(answer.json(), schema)) == []
    refused = ask(method, stored(path), body, secret="svc_admin_wrong")
    validator(operation["responses"]["401"]["content"]["application/json"]["schema"]).validate(
        refused.json()
    )


def test_every_operation_and_every_member_of_its_body_is_called() -> None:
    sent: dict[str, set[str]] = {}
    for method, path, body, _ in CALLS:
        sent.setdefault(operation_of(method, path)["operationId"], set()).update(body or ())
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            taken = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            members = set(taken.get("schema", {}).get("properties", ()))
            missing = members - sent[operation["operationId"]]
            assert missing == set(), operation["operationId"]
