"""The OpenAPI documents against the code they describe, both ways, and as they are served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import Draft202012Validator
from msgspec.structs import fields

from inference.wire import ChatRequest
from inference.wire.wording import EXPECTED
from svc_project.asgi import router
from svc_project.lib import errors
from svc_project.lib.errors import ApiError
from svc_project.openapi import DOCUMENTS, PATH, printed
from svc_project.surfaces import Surface
from tests.live import NO_TLS, ROOT, Gateway

METHODS = frozenset({"get", "post", "put", "patch", "delete"})
URLS = {Surface.INFERENCE: "svc_project.urls", Surface.SPEECH: "speech.urls"}
OF_NO_OPERATION = frozenset(
    {
        errors.NotFound,  # other paths
        errors.MethodNotAllowed,  # other methods
        errors.ClientDisconnected,  # nobody is there to read it
    }
)
both = pytest.mark.parametrize("surface", DOCUMENTS)


def operations(surface: Surface) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DOCUMENTS[surface]()["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def routes(surface: Surface) -> dict[str, set[str]]:
    """The methods of every API path that the code answers on ``surface``."""
    found = {path: {"post"} for path in router.consumers[surface] if path.startswith("/v1/")}
    for route, view in _views(get_resolver(URLS[surface])):
        if route.startswith("v1/"):
            path = "/" + route.replace("<path:", "{").replace(">", "}")
            found[path] = {*found.get(path, ()), *view.http_method_names} & METHODS
    return found


def _views(resolver: URLResolver) -> Iterator[tuple[str, Any]]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _views(pattern)
        elif isinstance(pattern, URLPattern):
            yield str(pattern.pattern), getattr(pattern.callback, "view_class", None)


def documented_errors(surface: Surface) -> set[tuple[int, str, str | None]]:
    found = set()
    for _, _, operation in operations(surface):
        for status, answer in operation["responses"].items():
            if status < "4":
                continue
            members = answer["content"]["application/json"]["schema"]["properties"]["error"]
            properties = members["properties"]
            for kind in properties["type"]["enum"]:
                for code in properties.get("code", {"enum": [None]})["enum"]:
                    found.add((int(status), kind, code))
    return found


@both
def test_every_api_path_is_documented_with_its_methods(surface: Surface) -> None:
    documented: dict[str, set[str]] = {}
    for path, method, _ in operations(surface):
        if path.startswith("/v1/"):
            documented.setdefault(path, set()).add(method)
    assert documented == routes(surface)


def test_every_error_of_the_contract_is_documented_and_no_other() -> None:
    coded = {
        (error.status, error.type, error.code)
        for error in vars(errors).values()
        if isinstance(error, type)
        and issubclass(error, ApiError)
        and error not in OF_NO_OPERATION
        and error not in {ApiError, errors.BadRequest, errors.ServerError}
        and error is not errors.ServiceUnavailable
    }
    assert documented_errors(Surface.INFERENCE) == coded


def test_every_field_of_a_chat_request_is_documented_in_its_own_words() -> None:
    request = DOCUMENTS[Surface.INFERENCE]()["components"]["schemas"]["ChatRequest"]
    assert set(request["properties"]) == {field.name for field in fields(ChatRequest)}
    for name, member in request["properties"].items():
        assert member["description"].lower() == f"{EXPECTED[name]}.".lower()


@both
def test_every_reference_leads_somewhere_and_every_schema_is_one(surface: Surface) -> None:
    document = DOCUMENTS[surface]()
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        assert f'"#/components/schemas/{name}"' in text, f"{name} is not used"
    for reference in text.split('"$ref": "#/components/schemas/')[1:]:
        assert reference.partition('"')[0] in schemas


@both
def test_every_operation_says_who_may_call_it_and_names_the_request(surface: Surface) -> None:
    for path, method, operation in operations(surface):
        assert operation["operationId"], (path, method)
        assert operation["security"] or path == "/health"
        assert ("401" in operation["responses"]) == bool(operation["security"])
        for answer in operation["responses"].values():
            assert answer["headers"]["x-request-id"]["required"]


@both
def test_no_word_of_the_document_is_ours_alone(surface: Surface) -> None:
    text = printed(surface)
    assert "``" not in text
    assert "\\\\Z" not in text


@both
def test_the_documentation_has_the_document(surface: Surface) -> None:
    kept = (ROOT / f"docs/api/openapi-{surface}.json").read_text()
    assert kept == printed(surface), f"run: manage.py openapi {surface}"


@both
def test_everybody_can_read_the_document(gateway: Gateway, surface: Surface) -> None:
    port = gateway.port if surface is Surface.INFERENCE else gateway.speech_port
    url = f"http://127.0.0.1:{port}{PATH}"
    answer = httpx2.get(url, verify=NO_TLS)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.json() == DOCUMENTS[surface]()
    refused = httpx2.post(url, verify=NO_TLS)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
