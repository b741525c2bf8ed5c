"""Failures as openai-python raises them, and clients that disconnect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from openai import DefaultHttpxClient, OpenAI
from openai.types.chat import ChatCompletionChunk

from accounts.models import Scope
from tests.support.clients.conversation import ANSWERS, FIRST_TURN, MODEL, TOOL, limited, text_of
from tests.support.clients.openai_python import ChatClient, asked
from tests.support.live import Gateway


@pytest.fixture
def sdk(gateway: Gateway) -> Iterator[OpenAI]:
    with gateway.openai() as sdk:
        yield sdk


def error_of(raised: pytest.ExceptionInfo[openai.APIError]) -> tuple[str | None, ...]:
    error = raised.value
    return error.type, error.param, error.code


@pytest.mark.parametrize("scope", [None, Scope.READ, Scope.SPEECH], ids=str)
def test_a_key_that_is_unknown_or_of_another_scope_is_an_authentication_error(
    gateway: Gateway, scope: Scope | None
) -> None:
    key = gateway.mint(scope) if scope else "svc_live_unknown"
    with replace(gateway, key=key).openai() as sdk, pytest.raises(openai.AuthenticationError) as no:
        sdk.chat.completions.create(model=MODEL, messages=asked(FIRST_TURN))

    assert error_of(no) == ("authentication_error", None, None)
    assert no.value.status_code == 401
    assert no.value.request_id is not None
    assert no.value.request_id.startswith("req_")
    assert gateway.rows() == []


def test_an_unknown_model_is_not_found_by_chat_and_by_the_catalog(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    with pytest.raises(openai.NotFoundError) as by_chat:
        chat_client.ask(asked(FIRST_TURN), model="acme/demo-9b")
    with pytest.raises(openai.NotFoundError) as by_catalog:
        chat_client.model("acme/demo-9b")

    for raised in (by_chat, by_catalog):
        assert error_of(raised) == ("not_found_error", "model", "model_not_found")
        assert "acme/demo-9b" in raised.value.message
    assert gateway.rows() == []


def test_parts_of_the_sdk_that_the_service_does_not_have_are_not_found(
    sdk: OpenAI, gateway: Gateway
) -> None:
    for use in (
        lambda: sdk.embeddings.create(model=MODEL, input="Hello"),
        lambda: sdk.responses.create(model=MODEL, input="Hello"),
        lambda: sdk.completions.create(model=MODEL, prompt="Hello"),
        sdk.files.list,
    ):
        with pytest.raises(openai.NotFoundError) as raised:
            use()
        assert error_of(raised) == ("not_found_error", None, None)
        assert raised.value.request_id is not None
    assert gateway.rows() == []


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"temperature": 3}, "temperature", None),
        ({"n": 2}, "n", "unsupported_parameter"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", None),
        ({"model": "acme/demo-mini", "tools": [TOOL]}, "tools", "model_does_not_support_tools"),
        ({"messages": [{"role": "tool", "content": "14"}]}, "messages[0].tool_call_id", None),
    ],
)
def test_a_refused_field_is_named(
    sdk: OpenAI, gateway: Gateway, fields: dict[str, Any], param: str, code: str | None
) -> None:
    request: dict[str, Any] = {"model": MODEL, "messages": asked(FIRST_TURN), **fields}
    with pytest.raises(openai.BadRequestError) as raised:
        sdk.chat.completions.create(**request)

    assert error_of(raised) == ("invalid_request_error", param, code)
    assert param.rpartition(".")[2] in raised.value.message
    assert gateway.rows() == []


def test_every_violation_of_the_schema_subset_is_listed(sdk: OpenAI, gateway: Gateway) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}, "name": {"type": "string"}},
        "required": ["age"],
        "additionalProperties": False,
    }
    with pytest.raises(openai.BadRequestError) as raised:
        sdk.chat.completions.create(
            model=MODEL,
            messages=asked(FIRST_TURN),
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "person", "schema": schema},
            },
        )

    assert error_of(raised) == (
        "invalid_request_error",
        "response_format",
        "unsupported_json_schema",
    )
    assert isinstance(raised.value.body, dict)
    assert {(each["code"], each["pointer"]) for each in raised.value.body["violations"]} == {
        ("unsupported_keyword", "/properties/age/minimum"),
        ("optional_property", "/properties/name"),
    }
    assert gateway.rows() == []


def test_a_rate_limit_gives_the_time_to_wait(gateway: Gateway) -> None:
    tiny = limited(gateway, requests_per_minute=1)
    with tiny.openai() as sdk:
        sdk.chat.completions.create(model=MODEL, messages=asked(FIRST_TURN))
        with pytest.raises(openai.RateLimitError) as raised:
            sdk.chat.completions.create(model=MODEL, messages=asked(FIRST_TURN), stream=True)

    assert error_of(raised) == ("rate_limit_error", None, "rate_limit_exceeded")
    headers = raised.value.response.headers
    assert headers["x-ratelimit-limit-requests"] == "1"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert 0 < int(headers["retry-after-ms"]) <= 60_000
    assert 0 <= int(headers["retry-after"]) * 1000 - int(headers["retry-after-ms"]) < 1000
    assert len(tiny.rows()) == 1


def test_the_sdk_waits_for_the_given_time_and_is_served_then(gateway: Gateway) -> None:
    tiny = limited(gateway, tokens_per_minute=6000)
    statuses: list[int] = []
    with tiny.openai(max_retries=2, http_client=counting(statuses)) as sdk:
        sdk.chat.completions.create(
            model=MODEL, messages=asked("[[sim tokens=5800]] Go on."), max_completion_tokens=5800
        )
        sdk.chat.completions.create(
            model=MODEL, messages=asked(FIRST_TURN), max_completion_tokens=400
        )

    assert statuses == [200, 429, 200]
    assert [row.outcome for row in tiny.rows()] == ["success", "success"]


def test_the_sdk_does_not_retry_a_request_that_can_never_fit(gateway: Gateway) -> None:
    tiny = limited(gateway, tokens_per_minute=50)
    statuses: list[int] = []
    with (
        tiny.openai(max_retries=2, http_client=counting(statuses)) as sdk,
        pytest.raises(openai.RateLimitError) as raised,
    ):
        sdk.chat.completions.create(
            model=MODEL, messages=asked(FIRST_TURN), max_completion_tokens=500
        )

    assert statuses == [429]
    assert raised.value.response.headers["x-ratelimit-limit-tokens"] == "50"
    assert tiny.rows() == []


def counting(statuses: list[int]) -> httpx2.Client:
    """Make the SDK's own HTTP client, and record the status of every response."""

    def note(response: httpx2.Response) -> None:
        statuses.append(response.status_code)

    return DefaultHttpxClient(event_hooks={"response": [note]})


@pytest.mark.parametrize(
    ("fault", "raises", "code", "outcome"),
    [
        ("status=500", openai.InternalServerError, "backend_error", "backend_error"),
        ("html", openai.InternalServerError, "backend_protocol_error", "backend_protocol_error"),
        ("status=400", openai.BadRequestError, "backend_rejected_request", "backend_rejected"),
        ("hang", openai.InternalServerError, "backend_timeout", "backend_timeout"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_backends_failure_before_the_answer_is_a_typed_error_and_a_row(
    sdk: OpenAI,
    gateway: Gateway,
    fault: str,
    raises: type[openai.APIStatusError],
    code: str,
    outcome: str,
    stream: bool,
) -> None:
    with pytest.raises(raises) as raised:
        sdk.chat.completions.create(
            model=MODEL, messages=asked(f"[[sim fault={fault}]] Hello"), stream=stream
        )

    assert raised.value.code == code
    [row] = gateway.rows()
    assert (row.request_id, row.outcome) == (raised.value.request_id, outcome)
    assert (row.http_status, row.error_code) == (raised.value.status_code, code)


def test_every_attempt_of_a_retrying_client_is_a_row_of_its_own(gateway: Gateway) -> None:
    statuses: list[int] = []
    with (
        gateway.openai(max_retries=1, http_client=counting(statuses)) as sdk,
        pytest.raises(openai.InternalServerError),
    ):
        sdk.chat.completions.create(model=MODEL, messages=asked("[[sim fault=status=500]] Hello"))

    assert statuses == [500, 500]
    assert len({row.request_id for row in gateway.rows()}) == 2


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("error_frame@3", "backend_error"),
        ("cut@3", "backend_unavailable"),
        ("garbage@3", "backend_protocol_error"),
    ],
)
def test_a_failure_in_the_middle_of_a_stream_is_raised_after_the_text_so_far(
    sdk: OpenAI, gateway: Gateway, fault: str, code: str
) -> None:
    chunks: list[ChatCompletionChunk] = []
    with sdk.chat.completions.create(
        model=MODEL,
        messages=asked(f"[[sim tokens=20 fault={fault}]] Go on."),
        stream=True,
    ) as stream:
        with pytest.raises(openai.APIError) as raised:
            chunks.extend(stream)
        request_id = stream.response.headers["x-request-id"]

    assert not isinstance(raised.value, openai.APIStatusError)
    assert error_of(raised) == ("server_error", None, code)
    assert text_of(chunks)
    row = gateway.row(request_id)
    assert (row.outcome, row.http_status, row.error_code) == (code, 200, code)
    assert 0 < row.delivered_output_tokens <= row.generated_output_tokens


@pytest.mark.parametrize(
    ("model", "is_stopped"), [("acme/demo-8b", True), ("acme/plain-8b", False)]
)
def test_a_client_that_breaks_out_of_a_stream_pays_for_what_was_generated(
    chat_client: ChatClient, gateway: Gateway, model: str, is_stopped: bool
) -> None:
    marker = uuid4().hex
    text = chat_client.disconnect_after(
        4, asked(f"[[sim tokens=60 pace=40]] Go on about {marker}."), model=model
    )

    assert text
    [row] = gateway.rows_when(1)
    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.error_code == "client_disconnected"
    assert 0 < row.delivered_output_tokens <= row.generated_output_tokens
    assert row.generated_output_tokens == row.backend_reported_output_tokens
    served = gateway.simulator.request_with(marker)
    assert served["aborted"] is is_stopped
    assert row.generated_output_tokens <= served["produced_tokens"]
    assert text_of(chat_client.stream(asked(FIRST_TURN))) == ANSWERS[0]


def test_a_client_that_disconnects_at_the_finish_reason_was_served(
    sdk: OpenAI, gateway: Gateway
) -> None:
    with sdk.chat.completions.create(
        model=MODEL, messages=asked(FIRST_TURN), stream=True
    ) as stream:
        for chunk in stream:
            if chunk.choices[0].finish_reason:
                break

    [row] = gateway.rows_when(1)
    assert (row.outcome, row.http_status) == ("success", 200)
    assert row.delivered_output_tokens == row.generated_output_tokens
