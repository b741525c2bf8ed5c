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

from tests.support.clients.conversation import ANSWERS, FIRST_TURN, MODEL, limited, text_of
from tests.support.clients.openai_python import ChatClient, asked
from tests.support.live import Gateway


@pytest.fixture
def sdk(gateway: Gateway) -> Iterator[OpenAI]:
    with gateway.openai() as sdk:
        yield sdk


def error_of(raised: pytest.ExceptionInfo[openai.APIError]) -> tuple[str | None, ...]:
    error = raised.value
    return error.type, error.param, error.code


def fault(name: str) -> dict[str, Any]:
    return {"messages": asked(f"[[sim fault={name}]] Hello")}


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


RAISED: dict[str, tuple[dict[str, Any], type[openai.APIStatusError], str | None, str | None]] = {
    "field": ({"temperature": 3}, openai.BadRequestError, "temperature", None),
    "model": ({"model": "acme/demo-9b"}, openai.NotFoundError, "model", "model_not_found"),
    "refused": (fault("status=400"), openai.BadRequestError, None, "backend_rejected_request"),
    "failed": (fault("status=500"), openai.InternalServerError, None, "backend_error"),
    "full": (fault("status=503"), openai.InternalServerError, None, "server_overloaded"),
}
"""Of each class of the SDK one; every code is in tests/spec/test_error_table.py."""


@pytest.mark.parametrize("case", RAISED)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_failure_before_the_answer_is_an_exception_of_its_class(
    sdk: OpenAI, gateway: Gateway, case: str, stream: bool
) -> None:
    fields, raises, param, code = RAISED[case]
    request: dict[str, Any] = {"model": MODEL, "messages": asked(FIRST_TURN), **fields}
    with pytest.raises(raises) as raised:
        sdk.chat.completions.create(**request, stream=stream)

    assert error_of(raised)[1:] == (param, code)
    assert raised.value.request_id is not None
    is_row = "messages" in fields
    rows = gateway.rows_when(int(is_row))
    told = [(row.request_id, row.http_status, row.error_code) for row in rows]
    assert told == [(raised.value.request_id, raised.value.status_code, code)] * is_row


def test_an_unknown_key_is_an_authentication_error(gateway: Gateway) -> None:
    with (
        replace(gateway, key="svc_live_unknown").openai() as sdk,
        pytest.raises(openai.AuthenticationError) as raised,
    ):
        sdk.chat.completions.create(model=MODEL, messages=asked(FIRST_TURN))

    assert error_of(raised) == ("authentication_error", None, None)


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
    assert [row.outcome for row in tiny.rows_when(2)] == ["success", "success"]


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
