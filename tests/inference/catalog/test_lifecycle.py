"""The transitions of the lifecycle and the rules of prices."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier

import pytest
from django.db import connection

from core import clock
from inference.catalog import lifecycle
from inference.catalog.lifecycle import LifecycleError, Status, status
from inference.catalog.pricing import PriceError, ensure_price, price_in_force
from inference.models import Backend, Deployment, ModelEntry
from tests.support.builders import catalog_rows

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_a_new_entry_is_a_draft_until_it_is_published() -> None:
    entry = catalog_rows.ready()
    assert status(entry, clock.now()) is Status.DRAFT

    lifecycle.publish(entry)

    assert status(entry, clock.now()) is Status.ACTIVE
    assert entry.published_at is not None


def test_publishing_needs_a_price_in_force() -> None:
    entry = catalog_rows.draft()
    catalog_rows.price(entry, clock.now() + HOUR)
    catalog_rows.deployed(entry)

    with pytest.raises(LifecycleError, match="no price in force") as refused:
        lifecycle.publish(entry)

    assert refused.value.field == "pricing"
    assert ModelEntry.objects.get().published_at is None


@pytest.mark.parametrize("switch_off", [Deployment, Backend])
def test_publishing_needs_a_backend_that_serves(switch_off: type[Deployment | Backend]) -> None:
    entry = catalog_rows.ready()
    switch_off._default_manager.update(enabled=False)

    with pytest.raises(LifecycleError, match="No enabled backend") as refused:
        lifecycle.publish(entry)

    assert refused.value.field == "backends"


def test_a_superseded_entry_serves_until_its_shutdown_date_and_is_retired_from_then_on() -> None:
    entry, successor = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")
    shutdown_at = clock.now() + HOUR

    lifecycle.supersede(entry, successor, shutdown_at)

    assert status(entry, shutdown_at - timedelta(milliseconds=1)) is Status.SUPERSEDED
    assert status(entry, shutdown_at) is Status.RETIRED


def test_a_superseded_entry_without_a_shutdown_date_goes_on_serving() -> None:
    entry, successor = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")

    lifecycle.supersede(entry, successor)

    assert status(entry, clock.now() + 10_000 * HOUR) is Status.SUPERSEDED


def test_a_superseded_entry_can_be_given_another_successor_and_date() -> None:
    entry, first, second = (
        catalog_rows.published(f"acme/{name}") for name in ("one", "two", "three")
    )
    lifecycle.supersede(entry, first, clock.now() + HOUR)
    since = entry.superseded_at

    lifecycle.supersede(entry, second)

    assert (entry.superseded_by, entry.shutdown_at, entry.superseded_at) == (second, None, since)


def test_the_shutdown_date_can_be_moved_and_taken_back() -> None:
    entry = catalog_rows.published("acme/one")
    lifecycle.supersede(entry, catalog_rows.published("acme/two"))

    for shutdown_at in (clock.now() + 2 * HOUR, clock.now() + HOUR, None):
        lifecycle.move_shutdown(entry, shutdown_at)
        assert ModelEntry.objects.get(pk=entry.pk).shutdown_at == shutdown_at


def test_a_withdrawn_notice_makes_the_entry_active_again() -> None:
    entry = catalog_rows.published("acme/one")
    lifecycle.supersede(entry, catalog_rows.published("acme/two"), clock.now() + HOUR)

    lifecycle.withdraw(entry)

    assert status(entry, clock.now() + 2 * HOUR) is Status.ACTIVE
    assert (entry.superseded_by, entry.superseded_at, entry.shutdown_at) == (None, None, None)


def _circle() -> None:
    one, two, three = (catalog_rows.published(f"acme/{name}") for name in ("one", "two", "three"))
    lifecycle.supersede(one, two)
    lifecycle.supersede(two, three)
    lifecycle.supersede(three, one)


def _itself() -> None:
    entry = catalog_rows.published()
    lifecycle.supersede(entry, entry)


def _superseded_by(successor: ModelEntry) -> None:
    lifecycle.supersede(catalog_rows.published("acme/one"), successor)


REFUSED: dict[str, tuple[Callable[[], None], str, str | None]] = {
    "publishing twice": (
        lambda: lifecycle.publish(catalog_rows.published()),
        "already published",
        None,
    ),
    "superseding a draft": (
        lambda: lifecycle.supersede(catalog_rows.draft(), catalog_rows.published("acme/two")),
        "is a draft",
        None,
    ),
    "a draft as successor": (
        lambda: _superseded_by(catalog_rows.draft("acme/two")),
        "acme/two is not published",
        "superseded_by",
    ),
    "a retired successor": (
        lambda: _superseded_by(catalog_rows.retired("acme/gone")),
        "acme/gone is retired",
        None,
    ),
    "its own successor": (_itself, "own successor", None),
    "a circle": (_circle, "directly or indirectly, by acme/three", None),
    "a date without a successor": (
        lambda: lifecycle.move_shutdown(catalog_rows.published(), clock.now() + HOUR),
        "no successor",
        None,
    ),
    "a notice that was not given": (
        lambda: lifecycle.withdraw(catalog_rows.published()),
        "not superseded",
        None,
    ),
}


@pytest.mark.parametrize("move", REFUSED)
def test_an_impossible_transition_is_refused_with_its_reason(move: str) -> None:
    tries, reason, field = REFUSED[move]

    with pytest.raises(LifecycleError, match=reason) as refused:
        tries()

    assert field in (None, refused.value.field)


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_transitions_cannot_close_a_circle() -> None:
    one, two = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")
    start = Barrier(2)

    def move(entry: ModelEntry, successor: ModelEntry) -> str:
        try:
            start.wait(timeout=60)
            lifecycle.supersede(entry, successor)
        except LifecycleError as error:
            return error.field
        finally:
            connection.close()
        return "superseded"

    with ThreadPoolExecutor(2) as threads:
        moves = [threads.submit(move, one, two), threads.submit(move, two, one)]

    assert sorted(move.result() for move in moves) == ["superseded", "superseded_by"]


def test_a_shutdown_date_cannot_lie_in_the_past() -> None:
    entry, successor = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")
    past = clock.now() - HOUR

    with pytest.raises(LifecycleError) as refused:
        lifecycle.supersede(entry, successor, past)
    assert refused.value.field == "shutdown_at"
    lifecycle.supersede(entry, successor)
    with pytest.raises(LifecycleError, match="has passed"):
        lifecycle.move_shutdown(entry, past)


def test_nothing_changes_on_a_retired_entry() -> None:
    successor = catalog_rows.published("acme/two")
    entry = catalog_rows.retired("acme/gone", successor)
    moves: list[Callable[[], None]] = [
        lambda: lifecycle.publish(entry),
        lambda: lifecycle.supersede(entry, successor),
        lambda: lifecycle.move_shutdown(entry, clock.now() + HOUR),
        lambda: lifecycle.withdraw(entry),
    ]

    for move in moves:
        with pytest.raises(LifecycleError, match="is retired"):
            move()


def test_the_latest_price_that_has_begun_is_in_force() -> None:
    entry = catalog_rows.draft()
    now = clock.now()
    catalog_rows.price(entry, now - HOUR, input_per_mtok="1")
    catalog_rows.price(entry, now + HOUR, input_per_mtok="3")
    catalog_rows.price(entry, now + HOUR / 2, input_per_mtok="2")

    amounts = [
        price.input_per_mtok if (price := price_in_force(entry, at)) else None
        for at in (now - 2 * HOUR, now, now + HOUR / 2, now + 2 * HOUR)
    ]

    assert amounts == [None, Decimal(1), Decimal(2), Decimal(3)]


def test_an_appended_price_holds_from_now() -> None:
    before = clock.now()

    price = ensure_price(catalog_rows.published(), "0.00000001", "1234567890.12345678", "USD")

    assert price is not None
    price.refresh_from_db()
    assert before <= price.effective_from <= clock.now()
    assert price.input_per_mtok == Decimal("0.00000001")
    assert price.output_per_mtok == Decimal("1234567890.12345678")


@pytest.mark.parametrize(
    ("field", "terms"),
    [
        ("input_per_mtok", ("-1", "1", "USD")),
        ("input_per_mtok", ("cheap", "1", "USD")),
        ("input_per_mtok", ("NaN", "1", "USD")),
        ("output_per_mtok", ("1", "0.000000001", "USD")),
        ("output_per_mtok", ("1", "12345678901", "USD")),
        ("currency", ("1", "1", "usd")),
    ],
)
def test_an_inexact_price_is_refused_with_its_column(
    field: str, terms: tuple[str, str, str]
) -> None:
    with pytest.raises(PriceError) as refused:
        ensure_price(catalog_rows.draft(), *terms)

    assert refused.value.field == field


def test_an_equal_price_is_not_appended_again() -> None:
    entry = catalog_rows.ready()

    assert ensure_price(entry, "0.150", "0.6", "USD") is None
    assert ensure_price(entry, "0.15", "0.7", "USD") is not None
    assert entry.prices.count() == 2
