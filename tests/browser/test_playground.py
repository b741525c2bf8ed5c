"""A person tries a model in the playground: streamed, metered without a key, by session only."""

from __future__ import annotations

import json

import httpx2
import pytest
from playwright.sync_api import expect

from core.ids import NIL_UUID
from core.money import cost_text, sum_costs, token_cost
from tests.browser.conftest import Visit
from tests.support.live import NO_TLS
from tests.support.until import until

PATH = "/console/playground/chat"


@pytest.mark.walk
def test_an_answer_streams_whole_and_its_receipt_is_the_row(consoling: Visit) -> None:
    gateway = consoling.gateway
    page = consoling.open("/console/playground?model=acme/demo-8b")
    page.fill("#system", "You are brief.")
    page.fill("#temperature", "0.5")
    page.fill("#message", "say: a whole answer, to its last word")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".message.assistant .content")).to_have_text(
        "a whole answer, to its last word"
    )
    expect(page.locator("#receipt .exact")).to_be_visible()
    (row,) = gateway.rows()
    assert str(row.api_key_id) == str(NIL_UUID)
    assert (row.streamed, row.outcome) == (True, "success")
    cost = sum_costs(
        (
            token_cost(row.backend_reported_input_tokens, row.input_price_per_mtok),
            token_cost(row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
    )
    expect(page.locator("#receipt .exact")).to_have_text(f"{cost_text(cost)} USD")
    expect(page.locator("#receipt")).to_contain_text(f"{row.backend_reported_output_tokens} tokens")
    sent = gateway.simulator.request_with("to its last word")["body"]
    assert sent["temperature"] == 0.5
    assert [each["role"] for each in sent["messages"]] == ["system", "user"]

    page.fill("#message", "say: and a second one")
    page.click("#send")
    expect(page.locator(".message.assistant .content").nth(1)).to_have_text("and a second one")
    sent = gateway.simulator.request_with("and a second one")["body"]
    assert [each["role"] for each in sent["messages"]] == ["system", "user", "assistant", "user"]


def test_the_schema_is_checked_as_it_is_typed(consoling: Visit) -> None:
    page = consoling.open("/console/playground?model=acme/demo-8b")
    page.click("text=JSON schema of the answer")

    page.fill(
        "#schema", '{"type": "object", "properties": {"age": {"type": "integer", "minimum": 1'
    )
    expect(page.locator("#schema-problem")).to_contain_text("Not JSON yet")
    page.fill(
        "#schema",
        json.dumps(
            {
                "type": "object",
                "properties": {"age": {"type": "integer", "minimum": 1}},
                "required": ["age"],
                "additionalProperties": False,
            }
        ),
    )
    expect(page.locator("#schema-problem")).to_contain_text("/properties/age/minimum")
    page.click("text=Insert an example >> visible=true")
    expect(page.locator("#schema-problem")).to_be_empty()
    page.click("text=This request as code")
    expect(page.locator("#curl-code")).to_contain_text('"json_schema"')


def test_a_stopped_answer_is_metered(consoling: Visit) -> None:
    gateway = consoling.gateway
    page = consoling.open("/console/playground?model=acme/demo-8b")
    page.fill("#message", "[[sim tokens=400 pace=20]]")
    page.click("#send")
    page.locator(".message.assistant").wait_for()

    page.click("#stop")

    expect(page.locator(".message.stopped")).to_be_visible()
    until(lambda: [row.outcome for row in gateway.rows()] == ["client_disconnected"])
    # The receipt is asked for until the row is there.
    expect(page.locator("#receipt .exact")).to_be_visible()
    consoling.problems[:] = [each for each in consoling.problems if "404" not in each]


def test_reasoning_streams_folded_above_the_answer(consoling: Visit) -> None:
    page = consoling.open("/console/playground?model=acme/demo-8b")
    page.fill("#message", "[[sim reasoning=60 tokens=5 pace=20]]")
    page.click("#send")

    # While only reasoning has come.
    expect(page.locator(".message .reasoning summary")).to_contain_text("Thinking")
    expect(page.locator("#receipt")).to_contain_text("First token seen here after")
    expect(page.locator(".message.assistant .content")).to_be_empty()
    page.click(".reasoning summary")
    expect(page.locator(".reasoning pre")).not_to_be_empty()

    expect(page.locator("#receipt")).to_contain_text("of which reasoning 60")
    expect(page.locator(".reasoning summary")).to_contain_text("Thought for")
    expect(page.locator(".message.assistant .content")).not_to_be_empty()
    page.fill("#message", "say: second")
    page.click("#send")
    expect(page.locator(".message.assistant .content").nth(1)).to_have_text("second")
    answered = consoling.gateway.simulator.request_with("say: second")["body"]["messages"][1]
    assert answered["content"] == page.locator(".message.assistant .content").nth(0).inner_text()


@pytest.mark.parametrize("failure", ["offline", "refused", "cut"])
def test_a_text_that_failed_is_back_in_its_field(consoling: Visit, failure: str) -> None:
    page = consoling.open("/console/playground?model=acme/demo-8b")
    if failure == "refused":
        consoling.gateway.organization.requests_per_minute = 0
        consoling.gateway.organization.save()
    text = "a question [[sim fault=cut@3]]" if failure == "cut" else "a question"
    page.fill("#message", text)
    page.context.set_offline(failure == "offline")
    page.click("#send")

    expect(page.locator(".message.error")).to_be_visible()
    expect(page.locator("#send")).to_be_enabled()
    expect(page.locator("#message")).to_have_value(text)
    # What was answered in part stays with its question; nothing else is there twice.
    expect(page.locator(".message.user")).to_have_count(1 if failure == "cut" else 0)
    if failure == "offline":
        expect(page.locator(".message.error")).to_contain_text("cannot be reached")
        page.context.set_offline(False)
        page.fill("#message", "say: sent again")
        page.click("#send")
        expect(page.locator(".message.assistant .content")).to_have_text("sent again")
    consoling.problems.clear()


@pytest.mark.parametrize(
    ("cookies", "token", "origin", "status"),
    [
        ({"csrftoken"}, True, True, 401),
        ({"sessionid", "csrftoken"}, False, True, 403),
        ({"sessionid", "csrftoken"}, True, False, 403),
        ({"sessionid", "csrftoken"}, True, True, 200),
    ],
)
def test_only_a_session_with_the_token_and_the_origin_may_chat(
    consoling: Visit, cookies: set[str], token: bool, origin: bool, status: int
) -> None:
    gateway = consoling.gateway
    page = consoling.open("/console/playground")
    kept = {each["name"]: each["value"] for each in page.context.cookies()}
    secret = page.locator("#settings [name=csrfmiddlewaretoken]").input_value()

    answer = httpx2.post(
        f"{gateway.url}{PATH}",
        json={"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: hello"}]},
        headers={
            "cookie": "; ".join(f"{name}={kept[name]}" for name in sorted(cookies)),
            "origin": gateway.url if origin else "https://evil.example",
            "authorization": f"Bearer {gateway.key}",  # opens nothing here
            **({"x-csrftoken": secret} if token else {}),
        },
        verify=NO_TLS,
    )

    assert answer.status_code == status
    assert len(gateway.rows()) == (1 if status == 200 else 0)
