"""A withdrawn price is never in force: for requests, the APIs, the console and files; in any worker."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.changes import ChangeWatcher
from accounts.models import Organization
from core import clock
from inference.catalog import pricing
from inference.catalog.catalog import Catalog
from inference.catalog.pricing import CERTAIN, WITHDRAWN_BEFORE
from inference.catalog.stored import stored_models
from inference.models import Price, PriceWithdrawal
from inference.models.catalog import Unchangeable
from svc_project.configuration.documents import load_catalog_values, stored_catalog
from tests.support.builders import catalog_rows, traffic
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.console import member, words

pytestmark = pytest.mark.django_db
AHEAD = timedelta(hours=1)


@pytest.fixture
def announced() -> Price:
    """A price that is announced for a published model, in an hour."""
    entry = catalog_rows.published()
    return catalog_rows.price(entry, clock.now() + AHEAD, input_per_mtok="35")


def test_all_readers_agree_that_the_price_before_holds(
    announced: Price, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = logged_in(member(Organization.objects.create(name="Northwind")))
    pricing.withdraw(announced)
    moved = timedelta(hours=2)
    real_now, real_time = clock.now, time.time
    monkeypatch.setattr(clock, "now", lambda: real_now() + moved)
    monkeypatch.setattr(time, "time", lambda: real_time() + moved.total_seconds())

    held = pricing.price_in_force(announced.entry, clock.now())
    assert held is not None
    assert held.input_per_mtok == Decimal("0.15")
    assert console.get("/v1/models").json()["data"][0]["pricing"]["input_per_mtok"] == "0.15"
    page = console.get("/console/models/acme/demo-8b")
    assert "35.00" not in words(page.content.decode())
    (stored,) = stored_models()
    assert stored.pricing is not None
    assert stored.pricing.input_per_mtok == "0.15"
    assert load_catalog_values(stored_catalog(), only_plan=True) == []
    (history,) = pricing.price_history().values()
    assert len(history) == 1


def test_a_worker_that_cannot_learn_of_a_withdrawal_keeps_the_price_before(
    announced: Price, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = ChangeWatcher()
    worker = Catalog(watcher)
    wall, monotonic, passed = time.time(), time.monotonic(), 0.0
    monkeypatch.setattr(time, "monotonic", lambda: monotonic + passed)
    watcher.poll()
    began = announced.effective_from.timestamp() - wall

    def priced() -> Decimal:
        model = worker.resolve("acme/demo-8b", wall + passed)
        return model.price_at(worker.pricing_time(wall + passed)).input

    # The database was last reached an hour before: the price may have been withdrawn since.
    passed = began + 1
    assert priced() == Decimal("0.15")
    passed = began + 86_400
    assert priced() == Decimal("0.15")
    # It was last reached when nobody could withdraw the price any more, which begins on time.
    passed = began - CERTAIN.total_seconds() + 1
    watcher.poll()
    passed = began + 0.5
    assert priced() == Decimal(35)
    assert WITHDRAWN_BEFORE > CERTAIN


def test_a_withdrawal_reaches_a_worker_with_the_next_poll(announced: Price) -> None:
    watcher = ChangeWatcher()
    worker = Catalog(watcher)
    watcher.poll()
    assert len(worker.snapshot.models["acme/demo-8b"].prices) == 2

    pricing.withdraw(announced)
    watcher.poll()

    assert len(worker.snapshot.models["acme/demo-8b"].prices) == 1


def test_withdrawals_are_appended_only(announced: Price) -> None:
    pricing.withdraw(announced)
    withdrawal = PriceWithdrawal.objects.get()

    for change in (
        withdrawal.save,
        lambda: PriceWithdrawal.objects.update(price=announced),
        PriceWithdrawal.objects.all().delete,
    ):
        with pytest.raises(Unchangeable):
            change()
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE inference_pricewithdrawal SET created_at = created_at")


def test_callers_are_told_of_a_higher_price_until_it_is_withdrawn(announced: Price) -> None:
    caller, other = (Organization.objects.create(name=name) for name in ("caller", "other"))
    traffic.write(clock.now() - timedelta(days=20), organization_id=str(caller.pk))
    consoles = {
        each.name: logged_in(member(each, f"{each.name}@a.example")) for each in (caller, other)
    }
    catalog_rows.price(announced.entry, clock.now() + 2 * AHEAD, input_per_mtok="0.10")

    def told(name: str) -> str:
        shown = words(consoles[name].get("/console/", follow=True).content.decode())
        _, _, notice = shown.partition("acme/demo-8b gets another price on ")
        return notice[:300]

    assert "in 59" in told("caller") or "in 1" in told("caller")
    assert "Input 0.15 → 35.00, output 0.60 → 0.60 USD per million tokens" in told("caller")
    assert "0.10" not in told("caller")  # a lower price is no reason to be told
    assert told("other") == ""
    pricing.withdraw(announced)
    assert told("caller") == ""
