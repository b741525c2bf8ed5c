"""A person who forgot the password is back in the console."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Person, Visit
from tests.support.until import until

NEW = "a better battery staple"


def test_from_a_forgotten_password_back_into_the_console(
    visit: Visit, member: Person, worker_directory: Path
) -> None:
    page = visit.open("/console/")
    page.click("text=Forgot your password?")
    page.fill("#id_email", member.email)
    page.click("button.primary")
    expect(page.locator("[role=status]")).to_contain_text("a link is on its way")

    def mailed() -> str | None:
        for each in (worker_directory / "mail").glob("*.log"):
            text = each.read_text().replace("=\n", "")
            if member.email in text and (found := re.search(r"http://\S+/set/\S+", text)):
                return found[0]
        return None

    page.goto(until(mailed))
    page.fill("#id_new_password1", NEW)
    page.fill("#id_new_password2", NEW)
    page.click("button.primary")
    expect(page.locator("h1")).to_have_text("Your new password is set")
    page.click("a.primary")
    page.fill("#id_username", member.email)
    page.fill("#id_password", NEW)
    page.click("button.primary")
    page.wait_for_url("**/console/*/")
