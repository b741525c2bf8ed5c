"""The strict policy of the admin blocks nothing that its scripts need.

``visit`` notices what a policy blocks on any page; ``test_accessibility.py`` and
``test_admin_accessibility.py`` open every page.
"""

from __future__ import annotations

from tests.browser.conftest import Visit


def test_a_visit_notices_what_a_policy_blocks(visit: Visit) -> None:
    """Without this the other tests could not fail."""
    page = visit.open("/console/login")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.wait_for_timeout(200)
    assert any("style-src" in problem for problem in visit.problems)
    visit.problems.clear()


def test_the_admins_scripts_run_under_its_policy(operating: Visit) -> None:
    visit = operating
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
