"""The OpenAPI documents agree with the code, both ways, and with the served copies."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import httpx2
import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import Draft202012Validator
from msgspec.structs import fields

from core import errors
from core.asgi.websocket import UpgradeRequired
from core.errors import ApiError
from inference.wire import ChatRequest
from inference.wire.wording import EXPECTED
from speech import errors as speech_errors
from speech.api import openapi_messages as speech_openapi
from speech.errors import error_type
from speech.requests.stream_consumer import CLOSE_CODES
from speech.wire import parse_message
from svc_project.asgi import router
from svc_project.openapi import DOCUMENTS, printed
from svc_project.openapi_consumers import MANAGEMENT, MANAGEMENT_PATH, PATH
from svc_project.reference.documents import operations_of
from svc_project.surfaces import Surface
from tests.support.live import NO_TLS, ROOT, Gateway

METHODS = frozenset({"get", "post", "put", "patch", "delete"})
MANAGEMENT_URLS = ("accounts.api.urls", "svc_project.configuration.urls")
URLS = {Surface.INFERENCE: "svc_project.urls", Surface.SPEECH: "speech.api.urls"}
OF_NO_OPERATION = frozenset(
    {
        errors.NotFound,  # other paths
        errors.MethodNotAllowed,  # other methods
        errors.ClientDisconnected,  # no client is there to read it
    }
)
every = pytest.mark.parametrize("name", DOCUMENTS)


def operations(name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in DOCUMENTS[name]()["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def routes(name: str) -> dict[str, set[str]]:
    """Return the methods of every API path of the code that the document ``name`` is about."""
    if name == MANAGEMENT:
        resolvers = [get_resolver(each) for each in MANAGEMENT_URLS]
        return {
            "/manage/v1/" + _template(route): {each for each in METHODS if hasattr(view, each)}
            for resolver in resolvers
            for route, view in _views(resolver)
        }
    surface = Surface(name)
    found = {path: {"post"} for path in router.consumers[surface] if path.startswith("/v1/")}
    sockets = router.sockets.get(surface, ())
    found |= {path: {"get"} for path in sockets if path.startswith("/v1/")}
    for route, view in _views(get_resolver(URLS[surface])):
        if route.startswith("v1/"):
            path = "/" + _template(route)
            found[path] = {*found.get(path, ()), *view.http_method_names} & METHODS
    return found


def _template(route: str) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)


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
            if int(status) < 400:
                continue
            members = answer["content"]["application/json"]["schema"]["properties"]["error"]
            properties = members["properties"]
            for kind in properties["type"]["enum"]:
                for code in properties.get("code", {"enum": [None]})["enum"]:
                    found.add((int(status), kind, code))
    return found


@every
def test_every_api_path_is_documented_with_its_methods(name: str) -> None:
    documented: dict[str, set[str]] = {}
    for path, method, _ in operations(name):
        if path.startswith(("/v1/", "/manage/")):
            documented.setdefault(path, set()).add(method)
    assert documented == routes(name)


def coded(module: ModuleType) -> set[type[ApiError]]:
    """Return the errors of a module, without the base classes."""
    bases = {errors.BadRequest, errors.ServerError, errors.ServiceUnavailable, ApiError}
    found = {each for _, each in inspect.getmembers(module, _is_error)}
    return found - bases - OF_NO_OPERATION


def _is_error(member: object) -> bool:
    return isinstance(member, type) and issubclass(member, ApiError)


def test_every_error_of_the_contract_is_documented_and_no_other() -> None:
    named = {(error.status, error.type, error.code) for error in coded(errors)}
    assert documented_errors(Surface.INFERENCE) == named


def test_every_error_of_the_speech_contract_is_documented_and_no_other() -> None:
    shared: set[type[ApiError]] = {
        errors.InvalidField,
        errors.InvalidCredential,
        errors.NotFound,
        errors.RequestTooLarge,
        errors.InternalError,
        errors.ServerOverloaded,
        errors.ServerShuttingDown,
        UpgradeRequired,
    }
    own = {error for error in coded(speech_errors) if error.__module__ == speech_errors.__name__}
    assert documented_errors(Surface.SPEECH) == {
        (error.status, error_type(error), None) for error in own | shared
    }


def test_every_close_code_is_documented_and_no_other() -> None:
    documented = {int(code) for code in speech_openapi.CLOSES}
    by_the_protocol = {1000, 1002, 1007, 1008, 1011}
    assert documented == {*CLOSE_CODES.values(), *by_the_protocol}


@pytest.mark.parametrize("kind", speech_openapi.CLIENT_MESSAGES)
def test_each_message_of_a_client_is_parsed_according_to_its_schema(kind: str) -> None:
    schema = Draft202012Validator(speech_openapi.CLIENT_MESSAGES[kind])
    whole = {
        "type": kind,
        "voice": "ava",
        "text": "a",
        "response_format": "wav",
        "speed": 1.5,
        "instructions": "Whisper.",
        "keep_open": True,
        "timestamps": "word",
    }
    wrong = [{**whole, field: [1]} for field in whole] + [
        {**whole, "speed": 0.24},
        {**whole, "speed": 4.1},
        {**whole, "speed": "1"},
        {**whole, "instructions": "a" * 4097},
        {**whole, "response_format": "vorbis"},
        {**whole, "text": "a" * 4097},
        {**whole, "voice": {"name": "ava"}},
        {**whole, "keep_open": "true"},
        {**whole, "timestamps": "phoneme"},
    ]
    missing = [{name: value for name, value in whole.items() if name != one} for one in whole]
    others = [{**whole, "voice": {"id": "ava"}}]
    optional = ("response_format", "speed", "instructions", "keep_open", "timestamps")
    others += [{**whole, name: None} for name in optional]
    for message in (whole, *wrong, *missing, *others):
        try:
            read = type(parse_message(json.dumps(message))).__name__.lower() == kind
        except errors.InvalidField:
            read = False
        assert schema.is_valid(message) == read, message


def test_document_and_code_have_the_same_messages() -> None:
    with pytest.raises(errors.InvalidField) as refusal:
        parse_message("{}")
    assert all(f"'{kind}'" in refusal.value.message for kind in speech_openapi.CLIENT_MESSAGES)


def test_the_document_has_the_fields_of_a_chat_request() -> None:
    request = DOCUMENTS[Surface.INFERENCE]()["components"]["schemas"]["ChatRequest"]
    assert set(request["properties"]) == {field.name for field in fields(ChatRequest)}


@every
def test_every_field_says_more_than_its_type(name: str) -> None:
    """What a wrong value must be is in the message about it; here is what happens with a right one."""
    for operation in operations_of(name):
        for field in operation.fields():
            said = field.description.lower().rstrip(".")
            assert said, f"{operation.id} {field.name}"
            assert said != EXPECTED.get(field.name, "").lower()
            assert not re.match(r"an? (string|number|integer|boolean|array|object)\b", said), said


@every
def test_every_reference_resolves_and_every_schema_is_valid(name: str) -> None:
    document = DOCUMENTS[name]()
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    for title, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        assert f'"#/components/schemas/{title}"' in text, f"{title} is not used"
    for reference in text.split('"$ref": "#/components/schemas/')[1:]:
        assert reference.partition('"')[0] in schemas


@every
def test_every_operation_says_who_may_call_it_and_names_the_request(name: str) -> None:
    for path, method, operation in operations(name):
        assert operation["operationId"], (path, method)
        assert operation["security"] or path == "/health", (path, method)
        assert ("401" in operation["responses"]) == bool(operation["security"])
        for answer in operation["responses"].values():
            assert answer["headers"]["x-request-id"]["required"]


@every
def test_the_document_has_no_python_syntax(name: str) -> None:
    text = printed(name)
    assert "``" not in text
    assert "\\\\Z" not in text


@every
def test_the_documentation_has_the_document(name: str) -> None:
    kept = (ROOT / f"docs/api/openapi-{name}.json").read_text()
    assert kept == printed(name), f"run: manage.py openapi {name}"


@every
def test_the_document_needs_no_key(gateway: Gateway, name: str) -> None:
    port = gateway.speech_port if name == Surface.SPEECH else gateway.port
    url = f"http://127.0.0.1:{port}{MANAGEMENT_PATH if name == MANAGEMENT else PATH}"
    answer = httpx2.get(url, verify=NO_TLS, timeout=60)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.json() == DOCUMENTS[name]()
    refused = httpx2.post(url, verify=NO_TLS, timeout=60)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
