"""An owner keeps and reads the content of a failed request, in a browser without scripts."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from accounts.models import Membership, Role, User
from inference.models import FailedContent
from tests.browser.conftest import Person, log_in
from tests.support.live import Gateway
from tests.support.pages.axe import findings
from tests.support.until import until


def test_an_owner_keeps_and_reads_what_failed(
    chromium: Browser, gateway: Gateway, member: Person
) -> None:
    user = User.objects.get(email=member.email)
    Membership.objects.filter(user=user).update(role=Role.OWNER)
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    log_in(page, gateway.url, member)
    page.click("text=Organization")
    page.fill("#id_hours", "6")
    page.click("text=Save")
    expect(page.locator(".notice.success")).to_have_text("Saved.")
    expect(page.locator("#id_hours")).to_have_value("6")

    def failed() -> str:
        answer = gateway.chat(
            f"Why? {'word ' * 400} say: one two [[sim fault=garbage@1]]", stream=True
        )
        return answer.headers["x-request-id"]

    kept: list[str] = []
    until(lambda: FailedContent.objects.filter(pk=kept.append(failed()) or kept[-1]).exists())  # type: ignore[func-returns-value]
    page.goto(f"{gateway.url}/console/requests/{kept[-1]}")
    page.click("text=Show the content")
    expect(page.locator("#kept-request")).to_contain_text("Why?")
    expect(page.locator("#kept-answer")).to_contain_text("one")
    html = page.content()
    context.close()

    looked = chromium.new_context().new_page()
    looked.route("**/shown", lambda route: route.fulfill(body=html, content_type="text/html"))
    looked.goto(f"{gateway.url}/shown")
    assert findings(looked, "the kept content") == []
    looked.context.close()
