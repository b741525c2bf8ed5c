"""The contract's error table, as data, against the code and against the live gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from accounts.keys.keys import mint, revoke
from accounts.models import Organization, Scope
from core import errors
from core.errors import ApiError
from tests.support.gateways import WITHOUT_DATABASE
from tests.support.live import Gateway
from tests.support.until import until

# Inference contract, Errors.
CONTRACT = frozenset(
    {
        (400, "unsupported_parameter"),
        (400, "model_does_not_support_tools"),
        (400, "model_does_not_support_structured_output"),
        (400, "unsupported_json_schema"),
        (400, "backend_rejected_request"),
        (400, "invalid_query"),
        (400, "period_inverted"),
        (400, "period_too_long"),
        (400, "invalid_cursor"),
        (400, "cursor_not_supported"),
        (401, None),
        (404, "model_not_found"),
        (404, "model_retired"),
        (413, "request_too_large"),
        (429, "rate_limit_exceeded"),
        (499, "client_disconnected"),
        (500, "backend_unavailable"),
        (500, "backend_protocol_error"),
        (500, "backend_error"),
        (500, "internal_error"),
        (503, "server_overloaded"),
        (503, "backend_timeout"),
        (503, "server_shutting_down"),
    }
)
# docs/api/inference.md, Errors: one type for each status.
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    499: "invalid_request_error",
    500: "server_error",
    503: "service_unavailable_error",
}
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
OUTSIDE = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string"}}}
QUOTA_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry")


def defined_errors(base: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    for error in base.__subclasses__():
        if error.__module__ == errors.__name__:
            yield error
        yield from defined_errors(error)


def test_the_code_has_every_code_of_the_contract_and_no_other() -> None:
    coded = {(error.status, error.code) for error in defined_errors() if error.code}

    assert coded == {line for line in CONTRACT if line[1]}
    assert errors.InvalidCredential.status == 401
    assert errors.InvalidCredential.code is None


def test_each_status_has_one_type() -> None:
    statuses = {status for status, _ in CONTRACT}
    found = {(error.status, error.type) for error in defined_errors() if error.status in statuses}

    assert found == set(TYPES.items())


def assert_refused(
    answer: httpx2.Response, status: int, code: str | None, param: str | None
) -> None:
    """Assert that ``answer`` is this line of the table, in the contract's form."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) - {"violations"} == {"message", "type", "param", "code"}
    assert (error["type"], error["code"], error["param"]) == (TYPES[status], code, param)
    assert error["message"].endswith((".", ")"))
    if status != 429:
        assert not [name for name in answer.headers if name.startswith("x-ratelimit-")]
        assert not [name for name in QUOTA_HEADERS if name in answer.headers]


REFUSALS: dict[str, tuple[int, str | None, str | None, dict[str, Any]]] = {
    "n above 1": (400, "unsupported_parameter", "n", {"n": 2}),
    "tools without tool calling": (
        *(400, "model_does_not_support_tools", "tools", {"model": "mini", "tools": [TOOL]}),
    ),
    "a schema without structured output": (
        *(400, "model_does_not_support_structured_output", "response_format"),
        {"model": "mini", "response_format": OUTSIDE},
    ),
    "a schema outside the subset": (
        *(400, "unsupported_json_schema", "response_format", {"response_format": OUTSIDE}),
    ),
    "a field that fails validation": (400, None, "temperature", {"temperature": 3}),
    "no key": (401, None, None, {"authorization": ""}),
    "a read key": (401, None, None, {"authorization": Scope.READ}),
    "a model nobody published": (404, "model_not_found", "model", {"model": "acme/typo"}),
    "a body above the model's size": (
        *(413, "request_too_large", None, {"text": "x" * 66_000, "model": "mini"}),
    ),
}
"""Status, code, param, and what is asked with; ``authorization`` may be the scope of a key."""


@pytest.mark.parametrize("line", REFUSALS)
def test_a_refusal_has_its_line_and_writes_no_row(gateway: Gateway, line: str) -> None:
    status, code, param, asked = REFUSALS[line]
    if "authorization" in asked:
        key = asked["authorization"] and f"Bearer {gateway.mint(asked['authorization'])}"
        answer = gateway.post({}, headers={"authorization": key})
    else:
        answer = gateway.chat(**{"text": "hi", **asked})

    assert_refused(answer, status, code, param)
    assert (status, code) in CONTRACT or code is None
    assert gateway.rows() == []


def test_a_revoked_key_gets_the_same_401_as_an_invented_one(gateway: Gateway) -> None:
    minted = mint(gateway.organization, Scope.INFERENCE, "to be revoked")
    headers = {"authorization": f"Bearer {minted.secret}"}
    assert gateway.post({}, headers=headers).status_code == 400
    revoke(minted.api_key)

    refused = until(
        lambda: answer if (answer := gateway.post({}, headers=headers)).status_code == 401 else None
    )

    invented = gateway.post({}, headers={"authorization": "Bearer svc_live_nonsense"})
    assert_refused(refused, 401, None, None)
    assert refused.json() == invented.json()
    assert refused.headers["www-authenticate"] == "Bearer"


def test_the_callers_limit_is_429_with_every_quota_header_and_no_row(gateway: Gateway) -> None:
    organization = Organization.objects.create(
        name=f"one a minute {gateway.organization.pk}",
        requests_per_minute=1,
        tokens_per_minute=60_000,
    )
    headers = {"authorization": f"Bearer {mint(organization, Scope.INFERENCE, 'test').secret}"}
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "hi"}]}

    first, second = (gateway.post(body, headers=headers) for _ in range(2))

    assert first.status_code == 200
    assert not [name for name in first.headers if name.startswith(("x-ratelimit", "retry-after"))]
    assert_refused(second, 429, "rate_limit_exceeded", None)
    assert 1 <= int(second.headers["retry-after"]) <= 60
    assert 1 <= int(second.headers["retry-after-ms"]) <= 60_000
    for scope in ("requests", "tokens"):
        assert int(second.headers[f"x-ratelimit-limit-{scope}"]) > 0
        assert int(second.headers[f"x-ratelimit-remaining-{scope}"]) >= 0
        assert second.headers[f"x-ratelimit-reset-{scope}"].endswith("s")


def test_without_the_database_a_key_is_a_server_error_and_not_a_401_and_health_answers(
    gateway_with: Callable[..., Gateway],
) -> None:
    gateway = gateway_with(**WITHOUT_DATABASE)

    assert_refused(gateway.chat("hi"), 500, "internal_error", None)
    health = httpx2.get(f"http://127.0.0.1:{gateway.speech_port}/health", timeout=60)
    assert health.json()["ok"] is True
