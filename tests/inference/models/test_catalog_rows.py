"""Changes that the catalog's tables refuse, through the ORM and in SQL, on every database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models.signals import post_save

from accounts.changes import CATALOG
from accounts.models import Organization
from core import clock
from core.backends.validators import check_base_url
from inference.models import (
    Backend,
    Deployment,
    DiagnosticCapture,
    ModelEntry,
    ModelLimit,
    Price,
    WeightsRecord,
)
from inference.models.catalog import Unchangeable
from tests.support.builders import catalog_rows
from tests.support.key_stamp import stamp

pytestmark = pytest.mark.django_db


def _sql(statement: str, *values: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def _stored(value: Any) -> Any:
    """Return a UUID in the database's own form."""
    return value if connection.vendor == "postgresql" else value.hex


def test_a_published_entry_stays_published_with_its_identifier_and_weights() -> None:
    entry = catalog_rows.published()

    for change in (
        {"identifier": "acme/other"},
        {"weights": catalog_rows.weights()},
        {"published_at": None},
    ):
        stored = ModelEntry.objects.get(pk=entry.pk)
        for column, value in change.items():
            setattr(stored, column, value)
        with pytest.raises(Unchangeable):
            stored.save()
        with pytest.raises(Unchangeable):
            ModelEntry.objects.update(**change)


def test_a_published_entry_cannot_be_deleted() -> None:
    entry = catalog_rows.published()

    with pytest.raises(Unchangeable):
        entry.delete()
    with pytest.raises(Unchangeable):
        ModelEntry.objects.all().delete()


def test_a_draft_can_be_renamed_and_deleted_with_its_prices() -> None:
    entry = catalog_rows.ready()

    entry.identifier = "acme/renamed"
    entry.save()
    entry.delete()

    assert not ModelEntry.objects.exists()
    assert not Price.objects.exists()


def test_figures_of_a_published_entry_can_change() -> None:
    entry = catalog_rows.published()

    entry.context_length = 65536
    entry.save()
    ModelEntry.objects.update(tool_calling=True)

    entry.refresh_from_db()
    assert (entry.context_length, entry.tool_calling) == (65536, True)


def test_a_price_never_changes_and_stays() -> None:
    price = catalog_rows.price(catalog_rows.published(), clock.now())

    price.input_per_mtok = "9"
    with pytest.raises(Unchangeable):
        price.save()
    with pytest.raises(Unchangeable):
        Price.objects.update(input_per_mtok="9")
    with pytest.raises(Unchangeable):
        price.delete()
    with pytest.raises(Unchangeable):
        Price.objects.all().delete()


def test_a_weights_record_never_changes() -> None:
    record = catalog_rows.weights()

    record.tokenizer = "another"
    with pytest.raises(Unchangeable):
        record.save()
    with pytest.raises(Unchangeable):
        WeightsRecord.objects.update(tokenizer="another")


def test_weights_that_an_entry_is_pinned_to_cannot_be_deleted() -> None:
    entry = catalog_rows.draft()

    with pytest.raises(IntegrityError):
        entry.weights.delete()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE inference_modelentry SET identifier = 'acme/other' WHERE id = %s",
        "UPDATE inference_modelentry SET published_at = NULL WHERE id = %s",
        "UPDATE inference_price SET input_per_mtok = 1 WHERE entry_id = %s",
        "UPDATE inference_weightsrecord SET tokenizer = 'x'"
        " WHERE id = (SELECT weights_id FROM inference_modelentry WHERE id = %s)",
    ],
)
def test_the_database_itself_refuses_to_change_published_facts(statement: str) -> None:
    entry = catalog_rows.published()

    with pytest.raises(IntegrityError):
        _sql(statement, _stored(entry.pk))


# SQLite guards against changes only; migration 0002 says why.
@pytest.mark.postgresql
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM inference_price WHERE entry_id = %s",
        "DELETE FROM inference_modelentry WHERE id = %s",
    ],
)
def test_postgresql_itself_refuses_to_delete_published_facts(statement: str) -> None:
    entry = catalog_rows.published()

    with pytest.raises(IntegrityError):
        _sql(statement, _stored(entry.pk))


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        "/acme",
        "acme/",
        "acme//demo",
        "-acme",
        "acme/../etc",
        "acme demo",
        "acmé",
        "a\n",
        "a" * 201,
    ],
)
def test_a_malformed_identifier_is_refused_by_form_and_database(identifier: str) -> None:
    entry = catalog_rows.draft()
    entry.identifier = identifier

    with pytest.raises(ValidationError) as refused:
        entry.full_clean()
    assert "identifier" in refused.value.message_dict
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        entry.save()


@pytest.mark.parametrize(
    "identifier", ["a", "acme/demo-8b", "org/team/model:v1.5_x", "7b", "a" * 200]
)
def test_a_well_formed_identifier_is_taken(identifier: str) -> None:
    entry = catalog_rows.draft(identifier)

    entry.full_clean()

    assert ModelEntry.objects.get().identifier == identifier


def _self_superseded(entry: ModelEntry) -> None:
    entry.superseded_by, entry.superseded_at = entry, clock.now()


BROKEN: list[tuple[str, Callable[[ModelEntry], Any]]] = [
    ("zero context", lambda entry: setattr(entry, "context_length", 0)),
    ("zero request bytes", lambda entry: setattr(entry, "max_request_bytes", 0)),
    ("zero default ceiling", lambda entry: setattr(entry, "default_max_output_tokens", 0)),
    ("ceiling above context", lambda entry: setattr(entry, "default_max_output_tokens", 99_999)),
    ("date without successor", lambda entry: setattr(entry, "superseded_at", clock.now())),
    ("shutdown without successor", lambda entry: setattr(entry, "shutdown_at", clock.now())),
    ("its own successor", _self_superseded),
]


@pytest.mark.parametrize(("why", "breaks"), BROKEN, ids=[why for why, _ in BROKEN])
def test_the_database_refuses_an_entry_that_contradicts_itself(
    why: str, breaks: Callable[[ModelEntry], Any]
) -> None:
    entry = catalog_rows.published()
    breaks(entry)

    with pytest.raises(IntegrityError), transaction.atomic():
        entry.save()


def _draft_is_superseded() -> None:
    entry, successor = catalog_rows.draft(), catalog_rows.published("acme/next")
    entry.superseded_by, entry.superseded_at = successor, clock.now()
    entry.save()


def _negative_price() -> None:
    _sql(
        "INSERT INTO inference_price (entry_id, input_per_mtok, output_per_mtok, currency,"
        " effective_from, created_at) VALUES (%s, -1, 0, 'USD', %s, %s)",
        _stored(catalog_rows.draft().pk),
        clock.now(),
        clock.now(),
    )


def _two_prices_from_one_moment() -> None:
    entry, moment = catalog_rows.draft(), clock.now()
    for _ in range(2):
        catalog_rows.price(entry, moment)


def _limit_of_zero() -> None:
    entry, organization = catalog_rows.draft(), Organization.objects.create(name="Acme")
    ModelLimit.objects.create(organization=organization, entry=entry)  # of None: unlimited
    ModelLimit.objects.update(tokens_per_minute=0)


def _credentials_in_an_address() -> None:
    row = catalog_rows.backend()
    Backend.objects.filter(pk=row.pk).update(base_url="http://user:secret@gpu-1/v1")


def _weights_twice_on_a_backend() -> None:
    entry, row = catalog_rows.draft(), catalog_rows.backend()
    for model in ("a", "b"):
        catalog_rows.deployed(entry, row, model=model)


REFUSED: dict[str, Callable[[], object]] = {
    "a draft is superseded": _draft_is_superseded,
    "currency usd": lambda: catalog_rows.price(catalog_rows.draft(), currency="usd"),
    "currency US": lambda: catalog_rows.price(catalog_rows.draft(), currency="US"),
    "currency US1": lambda: catalog_rows.price(catalog_rows.draft(), currency="US1"),
    "a negative price": _negative_price,
    "two prices from one moment": _two_prices_from_one_moment,
    "a backend without room": lambda: catalog_rows.backend(max_concurrency=0),
    "no time to the first byte": lambda: catalog_rows.backend(first_byte_seconds=0),
    "a negative pause": lambda: catalog_rows.backend(idle_seconds=-1),
    "no time in all": lambda: catalog_rows.backend(total_seconds=0),
    "a limit of zero": _limit_of_zero,
    "credentials in an address": _credentials_in_an_address,
    "a deployment without weight": lambda: catalog_rows.deployed(catalog_rows.draft(), weight=0),
    "comments without a pause": lambda: catalog_rows.draft(keep_alive_seconds=0),
    "comments after a day": lambda: catalog_rows.draft(keep_alive_seconds=86_400),
    "weights twice on a backend": _weights_twice_on_a_backend,
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_database_refuses_what_makes_no_sense(what: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        REFUSED[what]()


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:9000/v1", "https://gpu-1.internal/v1/", "http://[::1]:9000/v1"),
        *("http://10.0.0.5", "http://model"),
    ],
)
def test_an_ordinary_backend_address_is_taken(url: str) -> None:
    catalog_rows.backend(base_url=url).full_clean()


@pytest.mark.parametrize(
    "url",
    [
        *("", "gpu-1:9000/v1", "ftp://gpu-1/v1", "file:///etc/passwd", "http://", "http:///v1"),
        *("http://gpu 1/v1", "http://gpu-1:port/v1", "http://user:secret@gpu-1/v1"),
        *("http://gpu-1/v1?key=1", "http://gpu-1/v1#here", "http://169.254.169.254/latest"),
        *("http://2852039166/latest", "http://0xa9.0xfe.0xa9.0xfe/", "http://[fe80::1]/v1"),
        *("http://[fe80::1%25eth0]/v1", "http://[::ffff:169.254.169.254]/v1"),
        "http://[fd00:ec2::254]/v1",
    ],
)
def test_a_dangerous_or_broken_backend_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        check_base_url(url)
    with pytest.raises(ValidationError):
        catalog_rows.backend(base_url=url)


def test_every_change_of_the_catalog_updates_its_stamp() -> None:
    organization = Organization.objects.create(name="Acme")
    entry = catalog_rows.ready()
    seen = [stamp(CATALOG)]

    changes: list[Callable[[], Any]] = [
        entry.save,
        lambda: catalog_rows.price(entry, clock.now()),
        lambda: ModelLimit.objects.create(organization=organization, entry=entry),
        lambda: catalog_rows.backend("another").save(),
        lambda: Deployment.objects.get().delete(),
        catalog_rows.weights,
        entry.delete,
    ]
    for change in changes:
        change()
        seen.append(stamp(CATALOG))

    assert seen == sorted(set(seen))


def test_a_capture_is_no_change_of_the_catalog() -> None:
    seen = stamp(CATALOG)

    post_save.send(DiagnosticCapture, instance=DiagnosticCapture(), created=True)

    assert stamp(CATALOG) == seen
