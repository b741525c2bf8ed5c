"""A model's own fields and defaults, through the gateway: what the server gets, and what limits count."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.model_servers.scripted import ScriptedServer, scripted_server


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


def sent_body(
    gateway: Gateway, server: ScriptedServer, model: str, **fields: Any
) -> dict[str, Any]:
    marker = uuid.uuid4().hex
    assert gateway.chat(marker, model, **fields).status_code == 200
    (entry,) = server.requests_of(marker)
    body: dict[str, Any] = entry["body"]
    return body


def test_two_models_of_one_server_are_asked_with_fields_of_their_own(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    server = backend(
        gateway,
        base_url=scripted.base_url,
        extra_fields={"top_k": 40, "chat_template_kwargs": {"a": 1}},
    )
    thinking = publish(gateway, server, served_as="m")
    quick = publish(
        gateway,
        server,
        served_as="m",
        extra_fields={"chat_template_kwargs": {"enable_thinking": False}, "min_p": 0.1},
    )

    plain = sent_body(gateway, scripted, thinking.identifier)
    own = sent_body(gateway, scripted, quick.identifier)

    assert (plain["top_k"], plain["chat_template_kwargs"]) == (40, {"a": 1})
    assert "min_p" not in plain
    assert (own["top_k"], own["min_p"]) == (40, 0.1)
    assert own["chat_template_kwargs"] == {"enable_thinking": False}
    assert {plain["model"], own["model"]} == {"m"}


def test_what_a_caller_leaves_out_has_the_models_defaults(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    """Which defaults a request gets is in ``tests/inference/wire/test_defaults.py``."""
    defaults = {"temperature": 0.6, "top_p": 0.95, "max_completion_tokens": 50}
    server = backend(gateway, base_url=scripted.base_url)
    model = publish(gateway, server, defaults=defaults).identifier

    body = sent_body(gateway, scripted, model, temperature=0, max_tokens=7)

    assert (body["temperature"], body["top_p"]) == (0, 0.95)
    assert (body["max_tokens"], body["max_completion_tokens"]) == (7, 7)
    body = sent_body(gateway, scripted, model, temperature=None)
    assert (body["temperature"], body["max_tokens"]) == (0.6, 50)
    assert body["max_completion_tokens"] == 50


def test_a_default_cap_is_reserved_but_never_more_than_a_whole_limit(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    gateway.organization.tokens_per_minute = 1000
    gateway.organization.save()
    gateway.sees_changes()
    server = backend(gateway, base_url=scripted.base_url)
    capped = publish(gateway, server, defaults={"max_completion_tokens": 5000}).identifier
    plain = publish(gateway, server).identifier

    too_much = gateway.chat("Hello.", plain, max_completion_tokens=5000)
    assert (too_much.status_code, too_much.headers["x-should-retry"]) == (429, "false")
    assert gateway.chat("Hello.", capped).status_code == 200, "an operator's default fits any limit"
    assert gateway.chat("Hello.", capped, max_tokens=10).status_code == 200
    assert len(gateway.rows_when(2)) == 2
