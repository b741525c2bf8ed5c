"""The docs in a browser: search while one types, anchors into what is folded, copying."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Visit


def test_search_shows_places_while_one_types_and_leads_to_them(visit: Visit) -> None:
    page = visit.open("/docs/guides/quick-start")
    page.keyboard.press("/")
    page.keyboard.type("max_completion_tokens")
    first = page.locator("#docs-found a").first
    expect(first).to_contain_text("max_completion_tokens")
    expect(page.locator("#docs-told")).to_have_text(re.compile(r"^\d+ results$"))

    page.keyboard.press("ArrowDown")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/inference/#createChatCompletion-max_completion_tokens")
    expect(page.locator("#createChatCompletion-max_completion_tokens")).to_be_in_viewport()

    page.fill("#docs-query", "qwertz")
    expect(page.locator("#docs-found")).to_have_text("Nothing has all of these words.")
    page.keyboard.press("Escape")
    expect(page.locator("#docs-found")).to_be_hidden()


def test_a_link_opens_what_it_leads_into(visit: Visit) -> None:
    page = visit.open("/docs/inference/#createChatCompletion-200-choices-finish_reason")

    expect(page.locator("#createChatCompletion-200-choices-finish_reason")).to_be_in_viewport()


def test_the_frames_of_a_stream_are_numbered_and_copied_as_they_are(visit: Visit) -> None:
    page = visit.open("/docs/guides/streaming")

    frames = page.locator(".frames").first
    expect(frames.locator(".frame")).to_have_count(8)
    copied = frames.evaluate("each => each.textContent")
    assert re.fullmatch(r"data: \{.*\}\n\ndata: \[DONE\]\s*", copied, re.DOTALL)
    page.set_viewport_size({"width": 390, "height": 844})
    assert frames.evaluate("each => each.scrollWidth <= each.clientWidth"), "long ids wrap"
