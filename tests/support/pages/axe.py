"""Accessibility of a page in the browser, by axe."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_SERIOUS = {"serious", "critical"}


def serious_findings(page: Page) -> list[str]:
    """The rules that the page breaks seriously, each with its first elements."""
    results = Axe().run(page)
    return [
        f"{each['id']} {[node['target'] for node in each['nodes']][:3]}"
        for each in results.response["violations"]
        if each["impact"] in _SERIOUS
    ]
