"""Accessibility of a page in the browser, by axe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

# Without "preload": its reading of style sheets resolves their imports against the page, which logs
# 404s; no rule that counts here needs it.
_RUN: Final = """async () => {
  const results = await axe.run({resultTypes: ["violations"], preload: false});
  return results.violations.filter(each => ["serious", "critical"].includes(each.impact))
    .map(each => `${each.id} ${JSON.stringify(each.nodes.slice(0, 3).map(node => node.target))}`);
}"""
_SQUEEZED: Final = """() => [...document.querySelectorAll("main :is(td, th, dd, dt, p)")]
  .filter(each => each.offsetWidth < 20 && each.offsetHeight > 60)
  .map(each => each.textContent)"""
_SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_WIDTHS: Final = (1280, 390)
# Those within a closed <details> wait until it is opened.
_TRANSITIONS_OVER: Final = """() => Promise.allSettled(document.getAnimations()
  .filter(each => each.effect.target.checkVisibility()).map(each => each.finished))"""


def serious_findings(page: Page) -> list[str]:
    """The rules that the page breaks seriously, each with its first elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(_RUN)
    return found


def findings(page: Page, name: str, *, fits: bool = True) -> list[str]:
    """What is wrong with an open page in any look; ``fits``: also where it is wider than the window."""
    found = []
    for look, width in every_look(page):
        found += [f"{name} {look}: {each}" for each in serious_findings(page)]
        if fits and page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{name} {look}: it overflows")
        if fits and (squeezed := page.evaluate(_SQUEEZED)):
            found.append(f"{name} {look}: a letter a line: {squeezed}")
    return found


def every_look(page: Page) -> Iterator[tuple[str, int]]:
    """Show an open page light and dark, wide and as on a phone; yield each look's name and width.

    The page is not loaded again: its styles follow the window.
    """
    for width in _WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in _SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.evaluate(_TRANSITIONS_OVER)
            yield f"{scheme} {width}", width
    page.set_viewport_size({"width": _WIDTHS[0], "height": 900})
    page.emulate_media(color_scheme="light")
