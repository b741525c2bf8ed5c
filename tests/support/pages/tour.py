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
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.pages.pictures import installation
from tests.support.pages.tour_states import (
    Seeded,
    members,
    opened,
    operators,
    visiting,
    without_session,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import Organization

HOURS: Final = 45 * 24
VOICES: Final = ("ava", "leo", "nova", "emma")
HIGHEST: Final = 6000
"""Longer pages are cut."""
OPEN: Final = """for (const each of document.querySelectorAll(
  "main details:not(.rounded, .export), #content details:not(.rounded)")) each.open = true"""

PAINTED: Final = """() => new Promise(
  each => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(each, 150))))"""
"""A window that has just grown is painted in parts."""


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
                *((inside, *each) for each in members(seeded)),
                *((inside, *each) for each in operators(seeded)),
                *((inside, name, opened(address + path)) for name, path in _paths(seeded)),
                *((inside, *each) for each in visiting(seeded)),
                *((outside, *each) for each in without_session(seeded)),
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
