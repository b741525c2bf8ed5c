"""People look at their usage and manage their keys, in Chromium, over real traffic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import ApiKey, Scope
from core.clock import now
from tests.browser.conftest import Person, Visit, log_in, send_twice
from tests.support.builders.receipts import receipt
from tests.support.live import Gateway
from tests.support.until import until
from usage.ledger import rows
from usage.models import Refusal


def wide_period() -> str:
    """Return a period around today, so that midnight during a test changes nothing."""
    today = now()
    first, last = today - timedelta(days=3), today + timedelta(days=3)
    return f"start={first:%Y-%m-%d}&end={last:%Y-%m-%d}"


def traffic(gateway: Gateway) -> dict[str, Any]:
    """Chat with two models, and return the API's summary."""
    for number in range(3):
        assert gateway.chat(f"say: number {number}").status_code == 200
    assert gateway.chat("say: a longer answer than the others", "plain").status_code == 200
    return summary(gateway)


def summary(gateway: Gateway, query: str = "") -> dict[str, Any]:
    answer = httpx2.get(
        f"{gateway.base_url}/usage?{wide_period()}&group_by=model,api_key{query}",
        headers={"authorization": f"Bearer {gateway.mint(Scope.READ)}"},
    )
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def bars(page: Page) -> dict[str, list[tuple[float, int]]]:
    """Return the height and the number of each part of a bar by model, as drawn and as in its tip."""
    names = page.locator("#chart .legend li").all_inner_texts()
    colours = page.locator("#chart .legend rect").evaluate_all(
        "all => all.map(e => e.className.baseVal)"
    )
    model_of = dict(zip(colours, (name.strip() for name in names), strict=True))
    found: dict[str, list[tuple[float, int]]] = {}
    for bar in page.locator("#chart .plot .bar").all():
        tip = (bar.get_attribute("data-tip") or "").split("\n")
        assert re.fullmatch(r"\d+ \w+ \d{4}, so far: [\d,]+ tokens", tip[0]), tip
        said = dict(line.rsplit(": ", 1) for line in tip[1:])
        for part in bar.locator("rect:not(.reach)").all():
            box = part.bounding_box()
            assert box is not None
            model = model_of[part.get_attribute("class") or ""]
            found.setdefault(model, []).append((box["height"], int(said[model].replace(",", ""))))
    return found


def test_cards_and_bars_show_real_traffic(consoling: Visit) -> None:
    figures = traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}&metric=tokens")

    tokens = figures["tokens"]
    expect(page.locator("#requests")).to_have_text("4")
    expect(page.locator("#input-tokens")).to_have_text(f"{tokens['backend_reported_input']:,}")
    expect(page.locator("#output-tokens")).to_have_text(f"{tokens['backend_reported_output']:,}")
    exact = page.locator("#cost .whole")
    expect(exact).to_be_hidden()
    page.locator("#cost summary").focus()
    page.keyboard.press("Enter")
    expect(exact).to_have_text(f"{figures['cost']['total']} USD")
    expect(page.locator("#cost >> text=Copy")).to_be_visible()
    wanted = {
        entry["key"]["model_identifier"]: entry["tokens"]["backend_reported_input"]
        + entry["tokens"]["backend_reported_output"]
        for entry in figures["breakdowns"]["model"]
    }
    drawn = bars(page)
    assert {model: sum(said for _, said in each) for model, each in drawn.items()} == wanted
    heights = [height / said for each in drawn.values() for height, said in each]
    assert max(heights) - min(heights) < 0.02 * max(heights)

    page.click("text=The chart as a table")
    total = page.locator("#chart .twin tbody td.total").all_inner_texts()
    assert sum(int(each.replace(",", "")) for each in total) == sum(wanted.values())


def test_choosing_a_model_filters_at_once_and_back_returns(consoling: Visit) -> None:
    traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}")

    page.select_option("#model", "acme/plain-8b")

    page.wait_for_url("**model=acme*plain-8b*")
    assert "bucket=&" not in page.url
    expect(page.locator("#requests")).to_have_text("1")
    page.click("nav >> text=Requests")
    expect(page.locator("table.requests tbody tr")).to_have_count(1)
    page.click("table.requests tbody a")
    row = consoling.gateway.row(page.url.rsplit("/", 1)[1])
    expect(page.locator("#sum")).to_contain_text(f"{row.backend_reported_output_tokens:,}")
    page.go_back()
    page.go_back()
    page.go_back()
    expect(page.locator("#requests")).to_have_text("4")
    expect(page.locator("#model")).to_be_enabled()


@pytest.mark.walk
def test_a_key_is_made_copied_used_and_revoked(consoling: Visit) -> None:
    gateway, page = consoling.gateway, consoling.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    consoling.open("/console/keys")
    page.click("text=Create a key")
    page.fill("#id_label", "made in a browser")
    page.click("text=Create the key")

    page.click("[data-copies=secret]")
    expect(page.locator("[data-copies=secret]")).to_have_text("Copied")
    secret = page.evaluate("navigator.clipboard.readText()")
    assert secret == page.input_value("#secret")
    headers = {"authorization": f"Bearer {secret}"}
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: hello"}]}
    assert gateway.post(body, headers=headers).status_code == 200

    page.click("text=I have copied it")
    assert secret not in page.content()
    page.click("[aria-label='Revoke made in a browser']")
    page.fill("#id_confirmation", "made in a browser")
    page.click("text=Revoke the key")
    expect(page.get_by_role("status")).to_contain_text("is revoked")
    until(lambda: gateway.post(body, headers=headers).status_code == 401)

    consoling.open(f"/console/usage?{wide_period()}")
    expect(page.locator(".breakdown a", has_text="made in a browser")).to_be_visible()


def test_a_double_click_and_a_reload_of_a_new_secret_make_no_second_key(consoling: Visit) -> None:
    page = consoling.open("/console/keys/new")
    page.fill("#id_label", "made once")
    send_twice(page)
    expect(page.locator("#secret")).to_be_visible()

    page.reload()

    expect(page.locator("h1")).to_have_text("This key was made already")
    assert ApiKey.objects.filter(label="made once").count() == 1
    consoling.problems[:] = [each for each in consoling.problems if "409" not in each]


def test_the_console_works_without_javascript(
    chromium: Browser, gateway: Gateway, member: Person
) -> None:
    traffic(gateway)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    log_in(page, gateway.url, member)
    page.goto(f"{gateway.url}/console/usage?{wide_period()}")

    page.select_option("#model", "acme/plain-8b")
    page.click("text=Apply")

    assert page.inner_text("#requests") == "1"
    assert page.input_value("#model") == "acme/plain-8b"
    page.click("#cost summary")
    expect(page.locator("#cost .whole")).to_be_visible()
    page.click("text=Requests >> nth=0")
    assert page.locator("table.requests tbody tr").count() == 1
    page.click("nav >> text=Playground")
    expect(page.locator("noscript .notice")).to_be_visible()
    expect(page.locator("#playground")).to_be_hidden()
    context.close()


def test_a_refused_request_is_seen_on_a_telephone_without_javascript(
    chromium: Browser, gateway: Gateway, member: Person
) -> None:
    refused = gateway.chat("Hello", model="gpt-9").headers["x-request-id"]
    until(Refusal.objects.filter(request_id=refused).exists)
    context = chromium.new_context(
        java_script_enabled=False, viewport={"width": 390, "height": 844}
    )
    page = context.new_page()
    log_in(page, gateway.url, member)

    page.click("#refused a")
    page.click("table.requests tbody a")

    expect(page.locator("#request-id")).to_have_text(refused)
    expect(page.locator("main")).to_contain_text("The model 'gpt-9' does not exist.")
    page.click("#failure a")
    expect(page.locator("#model_not_found")).to_be_in_viewport()
    context.close()


@pytest.fixture
def telephone(chromium: Browser, gateway: Gateway, member: Person) -> Iterator[Page]:
    """A page of 390 px with a touch screen, logged in."""
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    log_in(page, gateway.url, member)
    yield page
    context.close()


def test_the_menu_of_a_telephone_shows_every_entry(telephone: Page, gateway: Gateway) -> None:
    page = telephone
    for path in ("keys", "requests", "usage", ""):
        page.goto(f"{gateway.url}/console/{path}")
        expect(page.locator(".top nav [aria-current]")).to_be_visible()
        for link in page.locator(".top nav a").all():
            expect(link).to_be_in_viewport(ratio=1)


def test_the_filters_of_a_telephone_are_one_line(telephone: Page, gateway: Gateway) -> None:
    telephone.goto(f"{gateway.url}/console/usage?model=acme/demo-8b")

    line = telephone.locator(".fold summary")
    expect(line).to_have_text("This month · acme/demo-8b · all keys")
    expect(telephone.locator("#model")).to_be_hidden()
    line.tap()
    expect(telephone.locator("#model")).to_be_visible()


def test_the_first_tap_on_a_bar_shows_its_parts_and_the_second_leads_to_its_day(
    telephone: Page, gateway: Gateway
) -> None:
    traffic(gateway)
    page = telephone
    page.goto(f"{gateway.url}/console/usage?{wide_period()}&metric=requests")
    asked = page.url
    bar = page.locator("#chart .bar").first
    bar.scroll_into_view_if_needed()
    bar.tap()
    expect(page.locator(".tip")).to_contain_text(": 4 requests")
    assert page.url == asked
    page.locator("h1").tap()
    expect(page.locator(".tip")).to_be_hidden()
    # A finger needs not meet the bar itself.
    page.locator(".plot").tap(position={"x": 4, "y": 60})
    expect(page.locator(".tip")).to_be_visible()
    bar.tap()
    page.wait_for_url("**bucket=hour*")


def test_a_chart_is_one_stop_and_arrow_keys_go_from_bar_to_bar(consoling: Visit) -> None:
    organization_id = str(consoling.gateway.organization.pk)
    for days in (1, 0):
        rows.insert([receipt(organization_id=organization_id)], now() - timedelta(days=days))
    page = consoling.open(f"/console/usage?{wide_period()}&metric=requests")

    stop = page.locator("#chart .plot [tabindex='0']")
    expect(stop).to_have_count(1)
    expect(stop).to_have_class("bar unfinished")
    stop.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#chart .bar").first).to_be_focused()
    expect(page.locator(".tip")).to_contain_text(f"{now() - timedelta(days=1):%-d %b %Y}: 1")
    page.keyboard.press("End")
    expect(page.locator(".tip")).to_contain_text(f"{now():%-d %b %Y}, so far: 1")


def test_a_table_is_sorted_by_an_address_and_a_row_leads_to_its_page(consoling: Visit) -> None:
    traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}")
    by_model = page.locator(".breakdown").first
    by_model.locator("thead a", has_text="Requests").click()
    page.wait_for_url("**sort=-requests*")
    expect(by_model.locator("tbody a")).to_have_text(["acme/demo-8b", "acme/plain-8b"])
    by_model.locator("thead a", has_text="Requests").click()
    expect(by_model.locator("tbody a")).to_have_text(["acme/plain-8b", "acme/demo-8b"])

    consoling.open("/console/requests")
    page.set_viewport_size({"width": 1280, "height": 320})
    last = page.locator("table.requests tbody tr").last
    last.scroll_into_view_if_needed()
    expect(page.locator("table.requests thead th").first).to_be_in_viewport(ratio=1)
    # The link of the row covers its cells.
    last.locator("td").nth(2).click(force=True)
    page.wait_for_url("**/console/*/requests/req_*")


def test_the_export_menu_has_the_files_and_closes_when_one_goes_on(consoling: Visit) -> None:
    traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}")

    page.click(".export summary")
    expect(page.locator("#curl")).to_contain_text("/v1/usage?start=")
    with page.expect_download() as download:
        page.click("text=Totals by model as CSV")
    assert download.value.suggested_filename.startswith("usage-")

    page.click("h1")
    expect(page.locator("#curl")).to_be_hidden()


def test_a_print_of_the_usage_names_the_organization(consoling: Visit) -> None:
    traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}")
    name = page.locator(".printed")
    expect(name).to_have_text(consoling.gateway.organization.name)
    expect(name).to_be_hidden()
    page.click(".export summary")

    page.emulate_media(media="print")

    expect(name).to_be_visible()
    expect(page.locator("#cost summary")).to_be_visible()
    expect(page.locator(".export")).to_be_hidden()


def test_a_bar_says_its_parts_by_keyboard_and_leads_to_its_day(consoling: Visit) -> None:
    traffic(consoling.gateway)
    page = consoling.open(f"/console/usage?{wide_period()}&metric=requests&by=key")

    page.locator("#chart .bar").focus()

    expect(page.locator(".tip")).to_contain_text(": 4 requests")
    expect(page.locator(".tip")).to_contain_text("test: 4")
    page.keyboard.press("Enter")
    page.wait_for_url("**bucket=hour*")
    assert "by=key" in page.url
    page.locator("#chart .bar").last.click()
    page.wait_for_url("**/console/*/requests?*")
    expect(page.locator("table.requests tbody tr").first).to_be_visible()
