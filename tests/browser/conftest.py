"""Runs the system's Chromium, not one of Playwright's downloads.

Its headless shell, where installed, needs 0.6 of the processor time.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from accounts.models import Membership, User
from tests.support.live import Gateway

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running_chromium(*flags: str) -> Iterator[Browser]:
    """A browser with ``flags`` besides the usual ones."""
    if CHROMIUM is None:
        pytest.skip(
            "Chromium is not installed: pages are not tried. Install 'chromium-headless-shell'."
        )
    # Playwright runs an event loop in this thread, which Django would take for async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start the browser for one test module only: its event loop would disturb other tests."""
    with running_chromium() as browser:
        yield browser


@dataclass
class Visit:
    """A page, and its problems that no assertion would notice."""

    page: Page
    gateway: Gateway
    problems: list[str]

    def open(self, path: str) -> Page:
        self.page.goto(self.gateway.url + path)
        return self.page


@pytest.fixture
def visit(chromium: Browser, gateway: Gateway) -> Iterator[Visit]:
    """Open a new browser session; what fails, and what a page's strict policy blocks, fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "response",
        lambda response: (
            problems.append(f"{response.status} {response.url}")
            if response.status >= 400 and not response.url.endswith("/favicon.ico")
            else None
        ),
    )
    page.on(
        "console",
        lambda message: (
            problems.append(f"{page.url}: {message.text}")
            # Files that fail are problems already, with their status first.
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    yield Visit(page, gateway, problems)
    context.close()
    assert problems == []


@dataclass
class Person:
    email: str
    password: str


def create(gateway: Gateway, make: Callable[[str, str], User]) -> Person:
    """Create a person of the test's organization."""
    person = Person(f"{secrets.token_hex(6)}@svc.example", secrets.token_urlsafe(12))
    user = make(person.email, person.password)
    Membership.objects.create(user=user, organization=gateway.organization)
    return person


@pytest.fixture
def operator(gateway: Gateway) -> Person:
    """Create an operator who belongs to the test's organization."""
    return create(gateway, User.objects.create_superuser)


@pytest.fixture
def operating(visit: Visit, operator: Person) -> Visit:
    """Log in to the admin."""
    page = visit.open("/admin/")
    page.fill("#id_username", operator.email)
    page.fill("#id_password", operator.password)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/")
    return visit


@pytest.fixture
def member(gateway: Gateway) -> Person:
    """Create a person of the test's organization who is not an operator."""
    return create(gateway, User.objects.create_user)


def log_in(page: Page, url: str, person: Person) -> None:
    """Log in to the console of the gateway at ``url``."""
    page.goto(f"{url}/console/")
    page.fill("#id_username", person.email)
    page.fill("#id_password", person.password)
    page.click("button.primary")
    page.wait_for_url("**/console/*/")


def send_twice(page: Page) -> None:
    """Send the form that makes a key by a double click, before the first answer is there."""
    page.evaluate(
        """() => {
          const form = document.querySelector("[name=one_time]").form;
          form.requestSubmit();
          setTimeout(() => form.requestSubmit());
        }"""
    )


@pytest.fixture
def consoling(visit: Visit, member: Person) -> Visit:
    """Log in to the console."""
    log_in(visit.page, visit.gateway.url, member)
    return visit
