"""Console and admin in a real browser: their strict policy blocks nothing that they need."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Visit

REPORT = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@pytest.fixture
def strict(visit: Visit) -> Visit:
    """Open a visit on which everything that a policy blocks, and every error, is a problem."""
    visit.page.add_init_script(REPORT)
    visit.page.on(
        "console",
        lambda message: (
            visit.problems.append(f"{visit.page.url}: {message.text}")
            # Files that fail are reported by ``visit``, which knows which are expected to.
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    return visit


@pytest.fixture
def strict_operating(strict: Visit, operating: Visit) -> Visit:
    return operating


def links(page: Page, pattern: str) -> list[str]:
    found = [link.get_attribute("href") or "" for link in page.locator("a").all()]
    return sorted({href for href in found if re.fullmatch(pattern, href)})


def test_the_reporter_notices_what_a_policy_blocks(strict: Visit) -> None:
    """Without this the other tests could not fail."""
    page = strict.open("/console/login")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.wait_for_timeout(200)
    assert any("policy: style-src" in problem for problem in strict.problems)
    strict.problems.clear()


def test_every_page_of_the_admin_loads_under_its_policy(strict_operating: Visit) -> None:
    visit, page = strict_operating, strict_operating.page
    lists = links(visit.open("/admin/"), r"/admin/\w+/\w+/")
    assert len(lists) >= 10
    for address in lists:
        visit.open(address)
        if page.locator(f'a[href^="{address}add/"]').count():
            visit.open(f"{address}add/")
            visit.open(address)
        rows = page.locator("#result_list tbody th a").all()
        if rows:
            row = rows[0].get_attribute("href") or ""
            visit.open(row)
            visit.open(row.replace("/change/", "/history/"))
    visit.open("/admin/password_change/")


def test_the_admins_scripts_run_under_its_policy(strict_operating: Visit) -> None:
    visit = strict_operating
    page = visit.open("/admin/inference/modelentry/add/")
    page.locator("#id_weights").locator("xpath=following-sibling::span[1]").click()
    page.locator(".select2-search__field").fill("acme")
    page.locator(".select2-results__option").first.click()
    page.locator(".datetimeshortcuts a").first.click()
    for shortcut in page.locator(".datetimeshortcuts a >> visible=true").all()[:4]:
        shortcut.click()
        page.keyboard.press("Escape")
    page.click("text=Add another Price")

    visit.open("/admin/accounts/user/")
    page.locator("#result_list tbody th a").first.click()
    page.click("text=Groups and single permissions")
    page.locator("#id_user_permissions_from option").first.dblclick()

    visit.open("/admin/accounts/apikey/")
    page.locator("#action-toggle").check()
    page.select_option("[name=action]", "rotate")
    page.click("text=Go")

    with page.expect_popup() as opened:
        visit.open("/admin/inference/modelentry/add/")
        page.click("#add_id_weights")
    opened.value.wait_for_load_state()
    opened.value.close()


def test_every_page_of_the_console_loads_under_its_policy(strict: Visit, consoling: Visit) -> None:
    pages = (
        "",
        "playground",
        "voices",
        "voices/pronunciations",
        "models",
        "models/acme/demo-8b",
        "usage",
        "requests",
        "keys",
    )
    for path in (*pages, "requests?surface=speech", "keys/new"):
        consoling.open(f"/console/{path}")
