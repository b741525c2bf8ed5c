"""An operator publishes, reprices and supersedes a model; clients see each within a second."""

from __future__ import annotations

import uuid
from typing import Any

import httpx2
from playwright.sync_api import Locator, Page

from inference.models import Backend
from tests.browser.conftest import Visit
from tests.support.live import Gateway
from tests.support.until import until


def choose(page: Page, field: Locator, text: str) -> None:
    """Pick ``text`` in one of the admin's searching select boxes."""
    field.locator("xpath=following-sibling::span[1]").click()
    page.locator(".select2-search__field").fill(text)
    page.locator(".select2-results__option", has_text=text).first.click()


def entry(gateway: Gateway, model: str) -> dict[str, Any]:
    answer = httpx2.get(f"{gateway.base_url}/models/{model}", headers=gateway.headers)
    found: dict[str, Any] = answer.json()
    return found


def test_an_operator_publishes_reprices_and_supersedes(operating: Visit) -> None:
    gateway, page = operating.gateway, operating.page
    model = f"acme/browser-{uuid.uuid4().hex[:8]}"

    operating.open("/admin/inference/weightsrecord/add/")
    page.fill("#id_name", f"{model}@1")
    page.fill("#id_source", "made in a browser")
    page.click("[name=_save]")
    backend = Backend.objects.get(name="simulator")
    operating.open(f"/admin/inference/backend/{backend.pk}/change/")
    page.click("text=Add another Deployment")
    row = page.locator("tr.dynamic-deployments").last
    choose(page, row.locator("select[name$=-weights]"), f"{model}@1")
    row.locator("input[name$=-model]").fill(f"{model}-on-backend")
    page.click("[name=_save]")

    operating.open("/admin/inference/modelentry/add/")
    page.fill("#id_identifier", model)
    choose(page, page.locator("#id_weights"), f"{model}@1")
    page.fill("#id_context_length", "32768")
    page.fill("#id_max_request_bytes", "1048576")
    page.fill("#id_default_max_output_tokens", "1024")
    page.fill("#id_prices-0-input_per_mtok", "0.15")
    page.fill("#id_prices-0-output_per_mtok", "0.60")
    page.click("[name=_continue]")
    assert entry(gateway, model)["error"]["code"] == "model_not_found"

    page.click(".object-tools >> text=Publish")
    page.click("#content-main [type=submit]")
    until(lambda: entry(gateway, model).get("id") == model)
    first = gateway.chat("say: before", model=model)
    assert first.status_code == 200

    page.fill("#id_prices-1-input_per_mtok", "0.25")
    page.fill("#id_prices-1-output_per_mtok", "1.00000001")
    page.click("[name=_continue]")
    until(lambda: entry(gateway, model)["pricing"]["output_per_mtok"] == "1.00000001")
    second = gateway.chat("say: after", model=model)

    page.click(".object-tools >> text=Supersede")
    choose(page, page.locator("#id_superseded_by"), "acme/demo-8b")
    page.click("#content-main [type=submit]")
    page.wait_for_load_state()
    until(
        lambda: (
            entry(gateway, model)["lifecycle"]
            == {"status": "superseded", "superseded_by": "acme/demo-8b", "shutdown_at": None}
        )
    )
    assert gateway.chat("say: still serving", model=model).status_code == 200

    before = gateway.row(first.headers["x-request-id"])
    after = gateway.row(second.headers["x-request-id"])
    assert str(before.output_price_per_mtok) == "0.60000000"
    assert str(after.output_price_per_mtok) == "1.00000001"
