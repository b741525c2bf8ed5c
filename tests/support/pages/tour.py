"""``python -m tests.support.pages.tour FOLDER [--only TEXT ...]``: takes a picture of every page.

Of the console, the docs and the admin, light and dark, 1280 and 390 pixels wide, to be looked at: in the
demo installation of ``tests.support.pages.pictures`` with speech, a second customer whose requests fail, and
real requests.
``--only``: pages whose names contain one of the texts.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.pages.pictures import SCHEMA, installation

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import Organization, User

HOURS: Final = 45 * 24
VOICES: Final = ("ava", "leo", "nova", "emma")
HIGHEST: Final = 6000
"""Longer pages are cut."""
OPEN: Final = """for (const each of document.querySelectorAll(
  "main details:not(.rounded, .export), #content details:not(.rounded)")) each.open = true"""

PAINTED: Final = """() => new Promise(
  each => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(each, 150))))"""
"""A window that has just grown is painted in parts."""


@dataclass
class Seeded:
    """What the pages are about."""

    address: str
    organization: Organization
    customer: Organization
    member: User
    names: dict[str, str]
    """What stands for the names in the paths of pages."""


def seed(address: str, failed: str) -> Seeded:
    """Add speech, another customer, prices ahead, a clone, limits, and real requests."""
    from accounts.keys.keys import mint
    from accounts.models import Membership, Organization, Role, Scope, User
    from core.clock import now
    from inference.models import ModelEntry, Price
    from tests.support.builders import speech_rows

    organization = Organization.objects.get()
    Organization.objects.filter(pk=organization.pk).update(
        requests_per_minute=600, tokens_per_minute=2_000_000, speech_characters_per_day=200_000
    )
    customer = Organization.objects.create(name="Northwind Traders", requests_per_minute=3)
    member = User.objects.create_user("ada@northwind.example", "correct horse battery")
    Membership.objects.create(user=member, organization=customer)
    for name in ("grace@demo.example", "a.very.long.name.of.a.colleague@subsidiary.demo.example"):
        user = User.objects.create_user(name, "correct horse battery")
        Membership.objects.create(user=user, organization=organization, role=Role.MEMBER)
    mini = ModelEntry.objects.get(identifier="acme/demo-mini")
    current = mini.prices.latest("effective_from")
    Price.objects.create(
        entry=mini,
        input_per_mtok=current.input_per_mtok * 2,
        output_per_mtok=current.output_per_mtok * 2,
        currency=current.currency,
        effective_from=now() + timedelta(days=5),
    )
    _invent_speech(organization)
    storefront = mint(customer, Scope.INFERENCE, "storefront")
    _invent_failures(customer, str(storefront.api_key.pk), mini)
    clone = speech_rows.clone(organization, "Our founder")
    key = mint(organization, Scope.INFERENCE, "real requests")
    names = {
        "failed_id": failed,
        "clone_id": clone.pk,
        "key_id": str(organization.api_keys.get(label="checkout, production").pk),
        **_real_requests(address, key.secret),
    }
    for _ in range(5):
        _chat(address, storefront.secret, model="acme/demo-mini")
    return Seeded(address, organization, customer, member, names)


def _invent_speech(organization: Organization) -> None:
    from accounts.keys.keys import mint
    from accounts.models import Scope
    from core.clock import now
    from tests.support.builders.receipts import speech_receipt
    from usage.ledger import rows

    chance = random.Random(7)
    keys = [mint(organization, Scope.SPEECH, label).api_key for label in ("app reader", "phone")]
    for hour in range(HOURS, 0, -3):
        moment = now() - timedelta(hours=hour)
        found = []
        for _ in range(chance.randrange(1, 7)):
            characters, is_failed = chance.randrange(30, 1800), chance.random() < 0.02
            found.append(
                speech_receipt(
                    organization_id=str(organization.pk),
                    api_key_id=str(chance.choice(keys).pk),
                    day=str(moment.date()),
                    voice=chance.choice(VOICES),
                    transport=chance.choice(("http", "websocket")),
                    outcome="backend_error" if is_failed else "success",
                    http_status=502 if is_failed else 200,
                    error_type="proxy_error" if is_failed else None,
                    characters=0 if is_failed else characters,
                    sentences=1 + characters // 90,
                    audio_ms=0 if is_failed else characters * 62,
                    first_audio_ms=chance.randrange(20, 90),
                )
            )
        rows.insert(found, moment)


def _invent_failures(customer: Organization, key: str, model: Any) -> None:
    """Half of the customer's requests of the last hours time out."""
    from core.clock import now
    from tests.support.builders.receipts import receipt
    from usage.ledger import rows

    chance = random.Random(5)
    for hour in range(240, 0, -1):
        found = []
        for _ in range(chance.randrange(3, 9)):
            is_failed = hour < 20 and chance.random() < 0.5
            found.append(
                receipt(
                    organization_id=str(customer.pk),
                    api_key_id=key,
                    model_identifier=model.identifier,
                    model_id=str(model.pk),
                    outcome="backend_timeout" if is_failed else "success",
                    http_status=504 if is_failed else 200,
                    error_code="backend_timeout" if is_failed else None,
                    backend_reported_input_tokens=0 if is_failed else chance.randrange(3000),
                    backend_reported_output_tokens=0 if is_failed else chance.randrange(900),
                    time_to_first_token_ms=0 if is_failed else chance.randrange(100, 900),
                    total_duration_ms=60_000 if is_failed else chance.randrange(900, 9000),
                    model_server="gpu-3" if is_failed else "gpu-1",
                    attempts=2 if is_failed else 1,
                    queue_ms=chance.randrange(40),
                )
            )
        rows.insert(found, now() - timedelta(hours=hour))


def _chat(address: str, key: str, text: str = "Hello!", **fields: Any) -> str:
    """Send a chat request; return its id."""
    from tests.support.live import fetch

    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": text}], **fields}
    answer = fetch(f"{address}/v1/chat/completions", "POST", key=key, json=body)
    return answer.headers["x-request-id"]


def _real_requests(address: str, key: str) -> dict[str, str]:
    from tests.support.until import until
    from usage.models import Refusal, SpeechRow, UsageRow

    good = _chat(address, key, "think about bees", stream=True)
    _chat(address, key, "[[sim fault=status@500]]")
    _chat(address, key, temperature=9)
    refused = _chat(address, key, model="acme/demo-9b")
    until(Refusal.objects.filter(request_id=refused).exists)
    until(UsageRow.objects.filter(request_id=good).exists)
    spoken = SpeechRow.objects.latest("occurred_at").request_id
    return {"request_id": good, "refused_id": refused, "spoken_id": spoken}


def _paths(seeded: Seeded) -> Iterator[tuple[str, str]]:
    """The names and addresses of pages that show themselves."""
    from django.contrib import admin

    import svc_project.urls  # noqa: F401  # registers the admin's tables
    from inference.models import Backend, ModelEntry
    from speech.models import SpeechBackend
    from tests.browser.test_accessibility import DOCS, PAGES
    from usage.models import UsageRow

    for each in PAGES:
        # An address without an organization leads to the page; those of a person have none.
        yield f"console-{each or 'home'}", f"/console/{each.format(**seeded.names)}"
    for each in DOCS:
        yield f"docs-{each or 'home'}", f"/docs/{each}"
    yield "admin-home", "/admin/"
    yield "admin-customer", f"/admin/customer/{seeded.customer.pk}/"
    yield "admin-customer-demo", f"/admin/customer/{seeded.organization.pk}/"
    yield "admin-key", f"/admin/key/{seeded.names['key_id']}/"
    yield "admin-sums", "/admin/usage/usagerow/sums/"
    failed = UsageRow.objects.filter(outcome="backend_timeout").latest("request_id")
    yield "admin-failed-row", f"/admin/usage/usagerow/{failed.pk}/change/"
    yield "admin-failures", "/admin/usage/usagerow/?outcome=failed"
    for model in admin.site._registry:
        name = model._meta.model_name
        base = f"/admin/{model._meta.app_label}/{name}/"
        yield f"admin-{name}-list", base
        if (row := model._default_manager.first()) is not None:
            yield f"admin-{name}-change", f"{base}{row.pk}/change/"
        yield f"admin-{name}-add", f"{base}add/"
    entry = ModelEntry.objects.get(identifier="acme/demo-mini")
    for verb in ("supersede", "price"):
        yield f"admin-model-{verb}", f"/admin/inference/modelentry/{entry.pk}/{verb}/"
    ending = ModelEntry.objects.get(identifier="acme/demo-8b")
    for verb in ("move-shutdown", "withdraw"):
        yield f"admin-model-{verb}", f"/admin/inference/modelentry/{ending.pk}/{verb}/"
    yield "admin-history", f"/admin/inference/modelentry/{entry.pk}/history/"
    backend = Backend.objects.get()
    yield "admin-backend-test", f"/admin/inference/backend/{backend.pk}/test/"
    yield "admin-add-server", "/admin/inference/backend/add-server/"
    if (speech := SpeechBackend.objects.first()) is not None:
        yield "admin-speech-test", f"/admin/speech/speechbackend/{speech.pk}/test/"
    yield "admin-nowhere", "/admin/nowhere/"


def _states(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """The names of pages that show something only after it was done, and what does it."""
    console = f"{seeded.address}/console/{seeded.organization.slug}"

    def answered(page: Page) -> None:
        page.goto(f"{console}/playground?model=acme/demo-8b")
        page.fill("#message", "think about bees. Use **bold** words.")
        page.keyboard.press("Control+Enter")
        page.locator(".receipt .rounded").wait_for()
        page.click("text=JSON schema of the answer")
        page.fill("#schema", SCHEMA)
        page.locator("#schema-problem:has-text('minimum')").wait_for()

    def compared(page: Page) -> None:
        page.goto(f"{console}/playground")
        page.click("#compare")
        page.fill("#message", "Why is the sky blue?")
        page.keyboard.press("Control+Enter")
        page.locator(".receipt .rounded").nth(1).wait_for()

    def spoken(page: Page) -> None:
        page.goto(f"{console}/voices")
        page.fill("#text", "The morning train was late again.")
        page.click("#say")
        page.locator("#request").wait_for()

    def secret(page: Page) -> None:
        page.goto(f"{console}/keys/new")
        page.fill("#id_label", "nightly batch")
        page.click("main button.primary")
        page.wait_for_selector("#secret")

    def exact(page: Page) -> None:
        page.goto(f"{console}/usage")
        page.locator("main .rounded").first.click()
        page.locator(".bar, .column, [data-tip]").nth(4).hover()

    yield "console-playground-answered", answered
    yield "console-playground-compared", compared
    yield "console-voices-spoken", spoken
    yield "console-key-secret", secret
    yield "console-usage-exact", exact


def _operators_states(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """Those of the admin."""
    from inference.models import Backend, ModelEntry

    admin = f"{seeded.address}/admin"

    def searched(text: str) -> Callable[[Page], object]:
        def search(page: Page) -> None:
            page.goto(f"{admin}/")
            page.fill("#svc-find", text)
            page.click(".svc-find [type=submit]")

        return search

    def checked(page: Page) -> None:
        page.goto(f"{admin}/inference/backend/add-server/")
        page.fill("#id_base_url", Backend.objects.get().base_url)
        page.fill("#id_models", "acme/found-by-the-tour")
        page.click("text=Check")
        page.locator("text=Publish selected").wait_for()

    def previewed(page: Page) -> None:
        entry = ModelEntry.objects.get(identifier="acme/demo-mini")
        page.goto(f"{admin}/inference/modelentry/{entry.pk}/change/")
        page.click(".object-tools >> text=New price")
        page.fill("#id_input_per_mtok", "0.25")
        page.fill("#id_output_per_mtok", "1.00000001")
        page.click("text=Preview")

    def tested(page: Page) -> None:
        page.goto(f"{admin}/inference/backend/{Backend.objects.get().pk}/test/")
        page.click("input[value=Test]")
        page.wait_for_selector("[role=status]")

    yield "admin-search-customer", searched("northwind")
    yield "admin-search-request", searched(seeded.names["refused_id"])
    yield "admin-search-nothing", searched("nobody")
    yield "admin-add-server-checked", checked
    yield "admin-price-preview", previewed
    yield "admin-backend-tested", tested


def _opened(address: str) -> Callable[[Page], object]:
    return lambda page: page.goto(address)


def _without_session(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """Pages before the login, and those of a member of a customer."""
    from tests.browser.conftest import Person, log_in
    from tests.browser.test_accessibility import BEFORE_THE_LOGIN

    for each in BEFORE_THE_LOGIN:
        address = f"{seeded.address}/console/{each}"
        yield f"login-{each}", _opened(address)
    yield "login-admin", _opened(f"{seeded.address}/admin/login/")

    def wrong(page: Page) -> None:
        page.goto(f"{seeded.address}/console/")
        page.fill("#id_username", seeded.member.email)
        page.fill("#id_password", "wrong")
        page.click("button.primary")

    yield "login-wrong", wrong

    def member(page: Page) -> None:
        log_in(page, seeded.address, Person(seeded.member.email, "correct horse battery"))

    yield "member-home", member
    for each in ("organization", "requests/refused", "requests?outcome=failed", "keys"):
        address = f"{seeded.address}/console/{seeded.customer.slug}/{each}"
        yield f"member-{each}", _opened(address)


def take(page: Page, folder: Path, name: str, show: Callable[[Page], object]) -> None:
    """Open a page and take its picture in every look."""
    from tests.support.pages.axe import every_look

    show(page)
    page.evaluate(OPEN)
    file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    for look, width in every_look(page):
        height = min(HIGHEST, page.evaluate("document.documentElement.scrollHeight"))
        page.set_viewport_size({"width": width, "height": max(height, 700)})
        page.evaluate(PAINTED)
        page.screenshot(path=folder / f"{file}--{look.replace(' ', '-')}.png")
        page.set_viewport_size({"width": width, "height": 900})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.pages.tour")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="texts in the names of pages")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with installation() as (address, cookie, failed, _):
        from tests.browser.conftest import running_chromium

        seeded = seed(address, failed)
        with running_chromium() as browser:
            inside, outside = browser.new_context(), browser.new_context()
            inside.add_cookies([{"name": "sessionid", "value": cookie, "url": address}])
            pages: list[tuple[Any, str, Callable[[Page], object]]] = [
                *((inside, *each) for each in _states(seeded)),
                *((inside, *each) for each in _operators_states(seeded)),
                *((inside, name, _opened(address + path)) for name, path in _paths(seeded)),
                *((outside, *each) for each in _without_session(seeded)),
            ]
            for context, name, show in pages:
                if any(text in name for text in arguments.only):
                    page = context.new_page()
                    try:
                        take(page, arguments.folder, name, show)
                    except Exception as problem:  # the others are taken all the same
                        print(f"{name}: {str(problem)[:300]}", flush=True)
                    page.close()


if __name__ == "__main__":
    main()
