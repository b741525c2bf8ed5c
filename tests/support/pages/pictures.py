"""``python -m tests.support.pages.pictures``: takes the pictures of the README again.

Makes a demo installation with seven weeks of invented usage in a directory of its own, opens its
console in Chromium, and writes the pictures into docs/images.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import django

from tests.support.servers.own_servers import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES: Final = Path(__file__).resolve().parents[3] / "docs/images"
WIDTH, HEIGHT = 1180, 860
DAYS: Final = 54
KEYS: Final = ("checkout, production", "search", "nightly batch")
SCHEMA: Final = """{"type": "object",
 "properties": {"age": {"type": "integer", "minimum": 1}},
 "required": ["age"],
 "additionalProperties": false}"""


def invent_usage(organization_id: str) -> str:
    """Write rows of the last weeks; return the id of a failed request."""
    from accounts.keys.keys import mint
    from accounts.models import Organization, Scope
    from core import clock
    from inference.models import ModelEntry
    from tests.support.builders.receipts import receipt
    from usage.ledger import rows

    chance = random.Random(11)
    organization = Organization.objects.get(pk=organization_id)
    keys = [mint(organization, Scope.INFERENCE, label).api_key for label in KEYS]
    models = {each.identifier: each for each in ModelEntry.objects.all()}
    now = clock.now()
    failed = ""
    for hour in range(DAYS * 24, 0, -1):
        moment: datetime = now - timedelta(hours=hour) + timedelta(minutes=chance.randrange(59))
        busy = 9 <= moment.hour <= 18 and moment.weekday() < 5
        receipts = []
        for _ in range(chance.randrange(8, 25) if busy else chance.randrange(4, 10)):
            key = keys[2] if moment.hour < 6 else chance.choice(keys[:2])
            model = models["acme/demo-8b" if chance.random() < 0.7 else "acme/demo-mini"]
            price = model.prices.order_by("effective_from").first()
            assert price is not None
            is_failed = chance.random() < 0.01
            first = chance.randrange(180, 900)
            receipts.append(
                receipt(
                    organization_id=str(organization_id),
                    api_key_id=str(key.pk),
                    model_identifier=model.identifier,
                    model_id=str(model.pk),
                    streamed=is_failed or chance.random() < 0.6,
                    outcome="backend_unavailable" if is_failed else "success",
                    http_status=200,
                    error_code="backend_unavailable" if is_failed else None,
                    backend_reported_input_tokens=chance.randrange(30_000),
                    backend_reported_output_tokens=chance.randrange(100, 900)
                    if is_failed
                    else chance.randrange(2_000, 9_000),
                    input_price_per_mtok=price.input_per_mtok,
                    output_price_per_mtok=price.output_per_mtok,
                    time_to_first_token_ms=first,
                    model_server="gpu-1",
                    attempts=1,
                    queue_ms=chance.randrange(90),
                    total_duration_ms=first + chance.randrange(9000),
                )
            )
            if is_failed:
                failed = receipts[-1].request_id
        if receipts:
            rows.insert(receipts, moment.replace(microsecond=0))
    return failed


@contextmanager
def installation() -> Iterator[tuple[str, str, str, str]]:
    """The address, a session's cookie, a failed request, and the ending model of a demo."""
    with tempfile.TemporaryDirectory(prefix="svc-pictures-") as name:
        directory = Path(name)
        os.environ.update(
            DATABASE_URL=f"sqlite:///{directory}/svc.sqlite3",
            SVC_DATA_DIR=name,
            DJANGO_SETTINGS_MODULE="svc_project.settings",
            DJANGO_ALLOW_ASYNC_UNSAFE="true",  # Playwright runs an event loop in this thread
        )
        django.setup()
        from django.core.management import call_command

        from accounts.models import Organization, User
        from benchmarks.pages import session_of
        from core import clock
        from inference.catalog import lifecycle
        from inference.models import ModelEntry
        from svc_project.management import demo
        from tests.support.live import Command

        call_command("migrate", verbosity=0)
        model_port, port, speech_port = free_port(), free_port(), free_port()
        demo.seed(f"http://127.0.0.1:{model_port}/v1")
        failed = invent_usage(str(Organization.objects.get().pk))
        old, new = (
            ModelEntry.objects.get(identifier=f"acme/demo-{size}") for size in ("8b", "mini")
        )
        lifecycle.supersede(old, new, clock.now() + timedelta(days=26))
        cookie = session_of(User.objects.get()).partition("=")[2]
        commands = [
            Command(
                [
                    "simulate_backend",
                    "--port",
                    str(model_port),
                    "--first-token-delay",
                    "0.2",
                    "--tokens-per-second",
                    "80",
                ],
                {},
                directory / "simulator.log",
            ),
            Command(
                ["serve", "--port", str(port), "--speech-port", str(speech_port)],
                {},
                directory / "gateway.log",
            ),
        ]
        try:
            commands[1].wait_for(f"127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}", cookie, failed, old.identifier
        finally:
            for command in commands:
                command.kill()


def take(page: Page, address: str, failed: str, ending: str) -> None:
    """Open each page, bring it into the state to show, and take its picture."""

    def picture(name: str) -> None:
        page.screenshot(path=IMAGES / f"{name}.png")

    page.goto(f"{address}/console/")
    picture("overview")
    page.goto(f"{address}/console/usage?by=key")
    page.locator(".bar, .column, [data-tip]").nth(4).hover()
    picture("usage")
    page.goto(f"{address}/console/models/{ending}")
    picture("model")
    page.goto(f"{address}/console/requests/{failed}")
    picture("failed-request")
    page.goto(f"{address}/console/playground?model={ending}")
    page.fill("#system", "You are brief.")
    page.fill("#message", "Why is the sky blue?")
    page.keyboard.press("Control+Enter")
    page.locator(".receipt .rounded").wait_for()
    page.click("text=JSON schema of the answer")
    page.fill("#schema", SCHEMA)
    page.locator("#schema-problem:has-text('minimum')").wait_for()
    page.evaluate("scrollTo(0, 0)")
    picture("playground")
    page.goto(f"{address}/console/voices")
    picture("voices")


def main() -> None:
    with installation() as (address, cookie, failed, ending):
        from tests.browser.conftest import running_chromium

        with running_chromium() as browser:
            context = browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT}, locale="en-GB"
            )
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": address}])
            take(context.new_page(), address, failed, ending)


if __name__ == "__main__":
    main()
