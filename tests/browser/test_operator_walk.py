"""An operator's way: test a backend, publish a model, reprice and deprecate it, see who still calls it."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import Organization
from inference.models import Backend
from tests.browser.conftest import Visit
from tests.support.builders.receipts import receipt
from tests.support.live import Gateway
from tests.support.model_servers.simulator import running_simulator
from tests.support.pages.axe import findings
from tests.support.until import until
from usage.ledger import rows
from usage.models import UsageRow

MOST_FORMS = 4
"""The forms that an operator sends from nothing to a published model."""


def choose(page: Page, field: Locator, text: str) -> None:
    """Pick ``text`` in one of the admin's searching select boxes."""
    field.locator("xpath=following-sibling::span[1]").click()
    page.locator(".select2-search__field").fill(text)
    page.locator(".select2-results__option", has_text=text).first.click()


def entry(gateway: Gateway, model: str) -> dict[str, Any]:
    answer = httpx2.get(f"{gateway.base_url}/models/{model}", headers=gateway.headers)
    found: dict[str, Any] = answer.json()
    return found


def sent_forms(page: Page) -> list[str]:
    """A list that grows with each form that ``page`` sends to the admin."""
    sent: list[str] = []
    page.on(
        "request",
        lambda request: (
            sent.append(request.url)
            if request.method == "POST" and "/admin/" in request.url
            else None
        ),
    )
    return sent


def publish(page: Page, url: str, backend: Backend, model: str) -> None:
    page.goto(f"{url}/admin/inference/weightsrecord/add/")
    page.fill("#id_name", f"{model}@1")
    page.fill("#id_source", "a walk")
    page.click("[name=_save]")
    page.goto(f"{url}/admin/inference/backend/{backend.pk}/change/")
    page.click("text=Add another Deployment")
    row = page.locator("tr.dynamic-deployments").last
    choose(page, row.locator("select[name$=-weights]"), f"{model}@1")
    row.locator("input[name$=-model]").fill(model)
    page.click("[name=_save]")
    page.goto(f"{url}/admin/inference/modelentry/add/")
    page.fill("#id_identifier", model)
    choose(page, page.locator("#id_weights"), f"{model}@1")
    for field, number in {
        "context_length": "32768",
        "max_request_bytes": "1048576",
        "default_max_output_tokens": "1024",
        "prices-0-input_per_mtok": "0.15",
        "prices-0-output_per_mtok": "0.60",
    }.items():
        page.fill(f"#id_{field}", number)
    page.click("[name=_continue]")
    expect(page.locator(".field-to_publish")).to_contain_text("Nothing is missing.")
    page.click(".object-tools >> text=Publish")
    page.click("#content-main [type=submit]")
    expect(page.locator(".field-status")).to_contain_text("active")


@pytest.mark.walk
def test_an_operator_tests_publishes_deprecates_and_sees_the_callers(operating: Visit) -> None:
    gateway, page = operating.gateway, operating.page
    model = f"acme/walk-{uuid.uuid4().hex[:8]}"
    backend = Backend.objects.get(name="simulator")

    operating.open("/admin/")
    page.click("#content-main a:has-text('Backends')")
    page.click("#result_list >> text=simulator")
    page.click(".object-tools >> text=Test")
    page.click("input[value=Test]")
    expect(page.locator("[role=status]")).to_have_text("The backend works.", timeout=60_000)
    expect(page.locator("table.svc-sums")).to_contain_text("Connect and list models")

    sent = sent_forms(page)
    publish(page, gateway.url, backend, model)
    assert len(sent) <= MOST_FORMS, sent
    until(lambda: entry(gateway, model).get("id") == model)

    before = gateway.chat("say: before", model=model)
    assert before.status_code == 200
    page.click(".object-tools >> text=New price")
    page.fill("#id_input_per_mtok", "0.25")
    page.fill("#id_output_per_mtok", "1.00000001")
    page.click("text=Preview")
    expect(page.locator("#svc-price + dl")).to_contain_text("0.15 → 0.25 (+66.7 %)")
    expect(page.locator(".svc-card >> tbody")).to_contain_text(gateway.organization.name)
    page.click("text=Save this price")
    until(lambda: entry(gateway, model)["pricing"]["output_per_mtok"] == "1.00000001")
    end = datetime.now(UTC) + timedelta(days=30)
    page.click(".object-tools >> text=Supersede")
    choose(page, page.locator("#id_superseded_by"), "acme/demo-8b")
    page.fill("#id_shutdown_at_0", f"{end:%Y-%m-%d}")
    page.fill("#id_shutdown_at_1", "12:00:00")
    page.click("#content-main [type=submit]")
    expect(page.locator(".field-status")).to_contain_text("superseded")
    expect(page.locator(".field-shutdown_at")).to_contain_text(f"{end:%-d %b %Y}, 12:00:00 UTC")
    until(
        lambda: (
            entry(gateway, model)["lifecycle"]
            == {
                "status": "superseded",
                "superseded_by": "acme/demo-8b",
                "shutdown_at": f"{end:%Y-%m-%d}T12:00:00.000Z",
            }
        )
    )
    answer = gateway.chat("say: still serving", model=model)
    assert "sunset" in answer.headers
    gateway.rows_when(2)
    for each, price in ((before, "0.60000000"), (answer, "1.00000001")):
        row = gateway.row(each.headers["x-request-id"])
        assert str(row.output_price_per_mtok) == price

    page.reload()
    callers = page.locator(".field-called_by")
    expect(callers).to_contain_text(gateway.organization.name)
    expect(callers).to_contain_text(gateway.api_key.prefix)
    expect(callers.locator("td.svc-number").first).to_have_text(re.compile("^2$"))
    expect(callers.locator("tbody td").last).to_have_text(
        re.compile(r"^\d+ \w{3} \d{4}, \d\d:00:00 UTC$")
    )
    page.goto(f"{gateway.url}/admin/")
    expect(page.locator(".svc-overview")).to_contain_text(model)


def test_the_search_for_a_leaked_key_puts_it_into_no_address(operating: Visit) -> None:
    gateway, page = operating.gateway, operating.page
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    for found, address in (
        (f"/admin/key/{gateway.api_key.pk}/", "/admin/"),
        (f"/admin/accounts/apikey/{gateway.api_key.pk}/change/", "/admin/accounts/apikey/"),
        (f"/console/{gateway.organization.slug}/keys/{gateway.api_key.pk}", "/console/requests"),
    ):
        operating.open(address)
        page.fill("#svc-find, #searchbar, #request_id", gateway.key)
        page.keyboard.press("Enter")
        if address.startswith("/admin/accounts/"):
            page.wait_for_url("**?q=*")
            page.click("#result_list tbody th a")
        page.wait_for_url(f"**{found}*")

    assert len(addresses) > 4
    assert not [each for each in addresses if gateway.key[20:] in each]


def test_a_server_is_added_and_its_model_published_in_three_clicks_and_two_loads(
    operating: Visit,
) -> None:
    gateway, page = operating.gateway, operating.page
    model = f"acme/added-{uuid.uuid4().hex[:8]}"
    loads: list[str] = []
    with running_simulator("--model", model) as simulator:
        page.on("domcontentloaded", lambda loaded: loads.append(loaded.url))
        page.click("text=Add a server")
        page.fill("#id_base_url", simulator.url)
        page.click("text=Check")
        expect(page.get_by_text("JSON schemas: yes")).to_be_visible(timeout=60_000)
        assert len(loads) == 2
        page.get_by_label(f"price of input, {model}").fill("0.15")
        page.get_by_label(f"price of output, {model}").fill("0.60")
        page.click("text=Publish selected")
        expect(page.locator(".messagelist .success")).to_contain_text(f"{model}. Callers can use")

        until(lambda: entry(gateway, model).get("id") == model)
        assert gateway.chat("say: hello", model=model).status_code == 200


_SEND = """async ([path, body]) => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const answer = await fetch(path, {method: "POST", body, headers: {"x-csrftoken": token}});
  return [answer.status, await answer.text()];
}"""


def test_an_operator_reads_a_customers_console_and_can_send_nothing(operating: Visit) -> None:
    page, customer = operating.page, Organization.objects.create(name=f"Globex {uuid.uuid4()}")
    operating.open(f"/admin/customer/{customer.pk}/")
    page.click("text=Read its console")
    banner = page.get_by_role("region", name="You are visiting")
    expect(banner).to_contain_text(customer.name)
    found = []
    for address in ("/console/", "/console/playground", "/console/keys", "/console/voices"):
        operating.open(address)
        expect(banner).to_be_visible()
        found += findings(page, address)
    assert found == []
    for path, body in (
        ("/console/playground/chat", '{"model": "acme/demo-8b", "messages": []}'),
        ("/console/voices/speech", '{"input": "Hello."}'),
        ("/console/voices/clones", "{}"),
    ):
        status, text = page.evaluate(_SEND, [path, body])
        assert (status, "as an operator" in text) == (403, True), (path, status, text)
    assert UsageRow.objects.filter(organization_id=customer.pk).count() == 0
    operating.problems.clear()
    banner.get_by_role("button", name="Leave").click()
    expect(page.locator("h1")).to_have_text(customer.name)


def clicks_of(page: Page) -> list[str]:
    """A list that grows with each button and link that is pressed on ``page``, by pointer or key."""
    made: list[str] = []

    def pressed(label: str) -> None:
        made.append(label)

    page.expose_function("svcPressed", pressed)
    page.add_init_script(
        "document.addEventListener('click', (event) => {"
        " const on = event.target.closest('a, button, input[type=submit]');"
        " if (on) svcPressed(on.value || on.textContent); }, true)"
    )
    return made


def test_why_a_customer_fails_and_a_leaked_key_take_two_clicks(operating: Visit) -> None:
    gateway, page = operating.gateway, operating.page
    customer = gateway.organization
    failed = receipt(
        organization_id=str(customer.pk), outcome="backend_timeout", model_server="gpu-3"
    )
    rows.insert([failed], datetime.now(UTC))
    clicks = clicks_of(page)

    operating.open("/admin/")
    page.fill("#svc-find", str(customer.pk))
    page.click(".svc-find [type=submit]")
    expect(page.locator("#svc-failures")).to_have_text("Failed in 30 days: 1")
    expect(page.locator("[aria-labelledby=svc-failures] tbody")).to_contain_text("gpu-3")
    assert len(clicks) <= 2, clicks

    clicks.clear()
    operating.open("/admin/")
    page.fill("#svc-find", gateway.key)
    page.click(".svc-find [type=submit]")
    page.click("text=Revoke now")
    expect(page.locator(".svc-card").first).to_contain_text("Revoked")
    assert len(clicks) == 2, clicks
    until(lambda: gateway.chat("say: no").status_code == 401)
