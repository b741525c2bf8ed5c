"""A person tries a model in the playground: streamed, metered without a key, by session only."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from core.ids import NIL_UUID
from core.money import cost_text, sum_costs, token_cost
from tests.browser.conftest import Visit
from tests.support.until import until

ANSWER = ".message.assistant .content"


@pytest.fixture
def page(consoling: Visit) -> Page:
    return consoling.open("/console/playground?model=acme/demo-8b")


def send(page: Page, text: str) -> None:
    page.fill("#message", text)
    page.click("#send")


@pytest.mark.walk
def test_an_answer_streams_whole_and_its_receipt_is_the_row(consoling: Visit, page: Page) -> None:
    gateway = consoling.gateway
    page.fill("#system", "You are brief.")
    page.fill("#temperature", "0.5")
    page.fill("#message", "say: a whole answer, to its last word")
    page.keyboard.press("Control+Enter")

    expect(page.locator(ANSWER)).to_have_text("a whole answer, to its last word")
    expect(page.locator(".receipt .rounded")).to_be_visible()
    (row,) = gateway.rows()
    assert str(row.api_key_id) == str(NIL_UUID)
    assert (row.streamed, row.outcome) == (True, "success")
    cost = sum_costs(
        (
            token_cost(row.backend_reported_input_tokens, row.input_price_per_mtok),
            token_cost(row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
    )
    page.click(".receipt summary")
    expect(page.locator(".receipt .whole")).to_have_text(f"{cost_text(cost)} USD")
    expect(page.locator(".receipt")).to_contain_text(f"{row.backend_reported_output_tokens} tokens")
    # Once, and not the text: a screen reader would begin again at every token.
    expect(page.locator("#announcement")).to_have_text(
        f"Answer complete, {row.backend_reported_output_tokens} tokens."
    )
    sent = gateway.simulator.request_with("to its last word")["body"]
    assert sent["temperature"] == 0.5
    assert [each["role"] for each in sent["messages"]] == ["system", "user"]

    send(page, "say: and a second one")
    expect(page.locator(ANSWER).nth(1)).to_have_text("and a second one")
    sent = gateway.simulator.request_with("and a second one")["body"]
    assert [each["role"] for each in sent["messages"]] == ["system", "user", "assistant", "user"]


def test_the_schema_is_checked_as_it_is_typed(consoling: Visit, page: Page) -> None:
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
    page.click("summary:text-is('Request')")
    page.click("label[for=code-curl]")
    expect(page.locator("#curl-code")).to_contain_text('"json_schema"')


def test_a_stopped_answer_is_metered(consoling: Visit, page: Page) -> None:
    gateway = consoling.gateway
    send(page, "[[sim tokens=400 pace=20]]")
    page.locator(".message.assistant").wait_for()

    page.click("#stop")

    expect(page.locator(".message.assistant")).to_contain_text("Stopped.")
    until(lambda: [row.outcome for row in gateway.rows()] == ["client_disconnected"])
    # The receipt is asked for until the row is there.
    expect(page.locator(".receipt .rounded")).to_be_visible()
    consoling.problems[:] = [each for each in consoling.problems if "404" not in each]


def test_reasoning_streams_folded_above_the_answer(consoling: Visit, page: Page) -> None:
    send(page, "[[sim reasoning=60 tokens=5 pace=20]]")

    # While only reasoning has come.
    summary = page.locator(".message .reasoning summary")
    expect(summary).to_have_text(re.compile(r"Thinking… \d\.\d s, \d+ tokens"))
    expect(page.locator(".figures")).to_contain_text("First token seen here after")
    expect(page.locator(ANSWER)).to_be_empty()
    page.click(".reasoning summary")
    expect(page.locator(".reasoning pre")).not_to_be_empty()

    expect(page.locator(".receipt")).to_contain_text("of which reasoning 60")
    expect(summary).to_have_text(re.compile(r"Thought for \d\.\d s, 60 tokens"))
    expect(page.locator(ANSWER)).not_to_be_empty()
    send(page, "say: second")
    expect(page.locator(ANSWER).nth(1)).to_have_text("second")
    answered = consoling.gateway.simulator.request_with("say: second")["body"]["messages"][1]
    assert answered["content"] == page.locator(ANSWER).nth(0).inner_text()


@pytest.mark.parametrize("failure", ["offline", "refused", "cut"])
def test_a_text_that_nobody_answered_is_back_in_its_field(
    consoling: Visit, page: Page, failure: str
) -> None:
    if failure == "refused":
        consoling.gateway.organization.requests_per_minute = 0
        consoling.gateway.organization.save()
        consoling.gateway.sees_changes()
    text = "a question [[sim fault=cut@3]]" if failure == "cut" else "a question"
    page.fill("#message", text)
    page.context.set_offline(failure == "offline")
    page.click("#send")

    expect(page.locator(".message.error")).to_be_visible()
    expect(page.locator("#send")).to_be_enabled()
    # What was answered in part stays with its question; nothing is there twice.
    expect(page.locator("#message")).to_have_value("" if failure == "cut" else text)
    expect(page.locator(".message.user")).to_have_count(1 if failure == "cut" else 0)
    expect(page.locator("text=Retry")).to_be_visible(visible=failure == "cut")
    if failure == "offline":
        expect(page.locator(".message.error")).to_contain_text("cannot be reached")
        page.context.set_offline(False)
        send(page, "say: sent again")
        expect(page.locator(ANSWER)).to_have_text("sent again")
    consoling.problems.clear()


def test_the_messages_are_sent_as_they_are_shown(consoling: Visit, page: Page) -> None:
    send(page, "say: first")
    expect(page.locator(ANSWER)).to_have_text("first")

    page.locator(".message.assistant >> text=Edit").click()
    page.fill(".message.assistant textarea", "edited")
    page.keyboard.press("Escape")
    page.click("text=Add a message")
    page.locator(".message select").select_option("system")
    page.fill(".message.system textarea", "be brief")
    page.fill("#message", "say: sent as shown")
    page.click("summary:text-is('Request')")
    expect(page.locator("#json-code")).to_contain_text("say: sent as shown")
    shown = page.locator("#json-code").inner_text()
    page.click("#send")
    expect(page.locator(ANSWER).nth(1)).to_have_text("sent as shown")

    # As it was shown before it was sent, and byte for byte in what the browser sent.
    assert [each["content"] for each in json.loads(shown)["messages"]] == [
        "say: first",
        "edited",
        "be brief",
        "say: sent as shown",
    ]
    sent = consoling.gateway.simulator.request_with("say: sent as shown")["body"]
    assert sent["messages"] == json.loads(shown)["messages"]
    page.locator(".message.user >> text=Remove").first.click()
    page.click("text=Retry")
    expect(page.locator(ANSWER).nth(1)).to_have_text("sent as shown")
    assert page.locator(".message").count() == 4


def test_a_call_is_answered_with_the_result_of_its_tool(consoling: Visit, page: Page) -> None:
    page.click("summary:text-is('Tools')")
    page.click("text=Insert an example >> visible=true")
    send(page, "What is the weather in Paris?")
    expect(page.locator(".calls")).to_have_text('get_weather({"city":"Paris"})')

    page.get_by_label("Answer of get_weather").fill("21 degrees, sunny")
    page.click("text=Send result")

    expect(page.locator(ANSWER).nth(1)).to_contain_text("21 degrees, sunny")
    sent = consoling.gateway.simulator.requests()[-1]["body"]["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "tool"]
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]


def test_calls_of_any_index_are_shown_and_sent_back(consoling: Visit, page: Page) -> None:
    """A server may number its calls as it likes; the list of calls has no gaps."""
    parts = [
        {"index": 1_000_000_000, "id": "a", "function": {"name": "first", "arguments": "{}"}},
        {"index": -1, "id": "b", "function": {"name": "second", "arguments": "{"}},
        {"index": -1, "function": {"arguments": "}"}},
    ]
    frames = [{"choices": [{"delta": {"tool_calls": [part]}}]} for part in parts]
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)
    page.route("**/console/playground/chat*", lambda route: route.fulfill(body=body))
    page.fill("#message", "Call both")
    page.click("#send")
    expect(page.locator(".calls")).to_have_text("first({})\nsecond({})")

    page.unroute("**/console/playground/chat*")
    for name in ("first", "second"):
        page.get_by_label(f"Answer of {name}").fill("done")
    page.click("text=Send result")
    expect(page.locator(".message.assistant .content").nth(1)).not_to_be_empty()

    sent = consoling.gateway.simulator.requests()[-1]["body"]["messages"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["a", "b"]


def test_parameters_are_sent_and_likely_tokens_shown(consoling: Visit, page: Page) -> None:
    page.click("text=More parameters")
    page.fill("#top_logprobs", "2")
    page.fill("#presence_penalty", "0.5")
    page.fill("#stops", "END\nHALT")
    send(page, "say: one two END three")

    expect(page.locator(ANSWER)).to_have_text("one two")
    page.click("text=Likely tokens >> visible=true >> nth=-1")
    expect(page.locator(".likely tbody tr").first).to_contain_text("%")
    sent = consoling.gateway.simulator.request_with("END three")["body"]
    named = ("logprobs", "top_logprobs", "presence_penalty", "stop")
    assert [sent[name] for name in named] == [True, 2, 0.5, ["END", "HALT"]]


def test_two_models_answer_side_by_side_each_with_its_figures(consoling: Visit, page: Page) -> None:
    page.click("#compare")
    page.locator(".pane select").nth(1).select_option("acme/plain-8b")
    send(page, "say: both")

    for place in (0, 1):
        pane = page.locator(".pane").nth(place)
        expect(pane.locator(ANSWER)).to_have_text("both")
        expect(pane.locator(".receipt")).to_contain_text("First token")
        expect(pane.locator(".receipt .rounded")).to_be_visible()
    models = {row.model_identifier for row in consoling.gateway.rows()}
    assert models == {"acme/demo-8b", "acme/plain-8b"}


def test_the_conversation_survives_a_reload_and_is_in_a_link(consoling: Visit, page: Page) -> None:
    page.fill("#system", "You are kept.")
    send(page, "say: **kept**")
    expect(page.locator(".message.assistant strong")).to_have_text("kept")
    page.reload()
    expect(page.locator(".message.assistant strong")).to_have_text("kept")

    page.click("#link")
    expect(page.locator("#link-told")).to_contain_text("link")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".message.assistant strong")).to_have_text("kept")
    expect(other.locator("#system")).to_have_value("You are kept.")
    # Whoever logs in after this person finds nothing in this tab.
    other.click("text=Log out")
    other.wait_for_url("**/login*")
    assert other.evaluate("sessionStorage.length") == 0


def test_a_model_that_is_not_served_is_named_and_no_other_is_chosen(consoling: Visit) -> None:
    page = consoling.open("/console/playground?model=nope/none")

    expect(page.locator(".pane .errorlist").first).to_contain_text("nope/none is not served")
    send(page, "say: hello")
    expect(page.locator(".pane .errorlist").first).to_have_text("Choose a model.")
    assert consoling.gateway.rows() == []


MARKDOWN = {
    "# T\n\n**b** and *i*, `c*d*` a_b_c": "<h3>T</h3><p><strong>b</strong> and <em>i</em>, <code>c*d*</code> a_b_c</p>",
    "1. x\n   - y\n2. z": "<ol><li><p>x</p><ul><li><p>y</p></li></ul></li><li><p>z</p></li></ol>",
    "```py\n<b>\n": "<div><pre><code>&lt;b&gt;\n</code></pre><button>Copy</button></div>",
    "| a | b |\n|---|--:|\n| 1 | 2 |": "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td>"
    "<td>2</td></tr></tbody></table></div>",
    "[x](https://a.example/b_(c)) [y](javascript:alert(1)) ![z](data:text/html,z)": '<p><a href="https://a.example/b_(c)"'
    ' rel="noopener noreferrer">x</a> [y](javascript:alert(1)) ![z](data:text/html,z)</p>',
    "<img src=x onerror=alert(1)> 2 * 3 * 4": "<p>&lt;img src=x onerror=alert(1)&gt; 2 * 3 * 4</p>",
}


def test_markdown_becomes_elements_and_never_markup(consoling: Visit) -> None:
    page = consoling.open("/console/playground")
    for text, shown in MARKDOWN.items():
        made = page.evaluate(
            """async (text) => {
              const { show } = await import("/static/playground-markdown.js");
              const place = document.createElement("div");
              show(place, text);
              for (const each of place.querySelectorAll("*"))
                for (const { name } of [...each.attributes])
                  if (name !== "href" && name !== "rel") each.removeAttribute(name);
              return place.innerHTML;
            }""",
            text,
        )
        assert made == shown


SLOW = ("```" + " " * 50_000 + "`", "#" + " " * 50_000 + "\r", "a|b\n" + " " * 50_000 + "x")
WIDE = "|a" * 1000 + "\n" + "|-" * 1000 + "|\n" + "|a\n" * 1000


def test_no_text_of_a_model_stops_the_page(consoling: Visit) -> None:
    page = consoling.open("/console/playground")
    took, cells = page.evaluate(
        """async ([slow, wide]) => {
          const { show } = await import("/static/playground-markdown.js");
          const place = document.createElement("div");
          const began = performance.now();
          for (const text of slow) show(place, text);
          const took = performance.now() - began;
          show(place, wide);
          return [took, place.querySelectorAll("td").length];
        }""",
        [SLOW, WIDE],
    )
    assert took < 1000  # ten seconds when a blank was tried at each of its places
    assert cells == 1000
