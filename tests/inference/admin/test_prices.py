"""New prices of a model in the admin: a preview first, and an announced price that is withdrawn."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry, Organization
from core import clock
from inference.models import ModelEntry, Price
from tests.support.builders import catalog_rows, traffic
from tests.support.pages.admin_forms import logged_in, moment, page_of, text_of
from tests.support.pages.admin_forms import operator as operator_with

pytestmark = pytest.mark.django_db
MONDAY = datetime(2099, 11, 30, tzinfo=UTC)


def price_form(**changes: Any) -> dict[str, Any]:
    typed = {"input_per_mtok": "0.20", "output_per_mtok": "0.60", "currency": "USD"}
    return {**typed, **moment("effective_from", MONDAY), **changes}


def previewed(client: Client, entry: ModelEntry, **changes: Any) -> Any:
    answer = client.post(page_of(entry, "price"), price_form(**changes))
    assert answer.status_code == 200
    return answer


def save(client: Client, entry: ModelEntry, **changes: Any) -> Any:
    against = previewed(client, entry, **changes).context["against"]
    sent = price_form(**{"save": "1", "against": against, **changes})
    return client.post(page_of(entry, "price"), sent, follow=True)


def used(organization: Organization, entry: ModelEntry, read: int, written: int) -> None:
    traffic.write(
        clock.now(),
        organization_id=str(organization.pk),
        model_id=str(entry.pk),
        model_identifier=entry.identifier,
        backend_reported_input_tokens=read,
        backend_reported_output_tokens=written,
    )


def test_a_price_is_previewed_by_customer_before_it_is_saved(operator: Client) -> None:
    entry = catalog_rows.published()
    less, most = (Organization.objects.create(name=name) for name in ("Less", "Most"))
    used(less, entry, 1_000_000, 1_000_000)
    used(most, entry, 40_000_000, 0)

    answer = previewed(operator, entry)

    shown = text_of(answer)
    assert "Mon 30 Nov 2099, 00:00:00 UTC, in" in shown
    assert "0.15 → 0.20 (+33.3 %)" in shown
    assert "0.60 → 0.60 (as before)" in shown
    assert "Most 6.00 8.00 + 2.00 Less 0.75 0.80 + 0.05 All 6.75 8.80 + 2.05" in shown
    assert Price.objects.count() == 1

    assert "applies to requests from 2099-11-30T00:00:00.000Z" in text_of(save(operator, entry))
    announced = Price.objects.get(effective_from=MONDAY)
    assert AuditEntry.objects.filter(kind="price", subject_id=announced.pk).exists()


def test_a_preview_that_is_out_of_date_is_shown_again(operator: Client) -> None:
    entry = catalog_rows.published()
    against = previewed(operator, entry).context["against"]
    catalog_rows.price(entry, clock.now(), input_per_mtok="0.10")

    answer = operator.post(page_of(entry, "price"), price_form(save="1", against=against))

    assert "The prices changed since the preview" in text_of(answer)
    assert "0.10 → 0.20 (+100 %)" in text_of(answer)
    assert Price.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            moment("effective_from", datetime(2020, 1, 1, tzinfo=UTC)),
            "cannot take effect in the past",
        ),
        ({"input_per_mtok": "-1"}, "greater than or equal to 0"),
        ({"input_per_mtok": "0.000000001"}, "no more than 8 decimal places"),
        ({"currency": "usd"}, "three capital letters"),
    ],
)
def test_an_invalid_price_is_an_error_at_its_field(
    operator: Client, changes: dict[str, str], told: str
) -> None:
    entry = catalog_rows.published()

    answer = operator.post(page_of(entry, "price"), price_form(**changes, save="1", against=""))

    assert told in text_of(answer)
    assert Price.objects.count() == 1


def test_an_announced_price_is_withdrawn_and_another_takes_its_moment(operator: Client) -> None:
    entry = catalog_rows.published()
    save(operator, entry)
    wrong = Price.objects.get(effective_from=MONDAY)
    link = re.search(r'href="([^"]+)">Withdraw…', operator.get(page_of(entry)).content.decode())
    assert link

    answer = operator.post(link[1], follow=True)

    assert "was withdrawn" in text_of(answer)
    assert "withdrawn 20" in text_of(answer)
    assert "Withdraw…" not in text_of(answer)
    entry_of_log = AuditEntry.objects.get(kind="withdrawal of a price")
    assert (entry_of_log.verb, entry_of_log.actor) == ("appended", "op@example.com")
    assert "already withdrawn" in text_of(operator.post(link[1]))
    save(operator, entry, input_per_mtok="0.16")
    right = Price.objects.standing().latest("effective_from")
    assert right.effective_from == MONDAY + timedelta(microseconds=1)
    assert Price.objects.filter(pk=wrong.pk).exists()


@pytest.mark.parametrize(
    ("begins", "told"),
    [
        (timedelta(minutes=19), "begins within 20 minutes"),
        (timedelta(0), "is or was in force"),
        (timedelta(hours=-1), "is or was in force"),
    ],
)
def test_a_price_in_force_or_about_to_be_is_not_withdrawn(
    operator: Client, begins: timedelta, told: str
) -> None:
    entry = catalog_rows.published()
    price = catalog_rows.price(entry, clock.now() + begins)

    answer = operator.post(f"{page_of(entry, 'price')}{price.pk}/withdraw/")

    assert told in text_of(answer)
    assert "Withdraw…" not in text_of(operator.get(page_of(entry)))
    assert Price.objects.standing().count() == 2


def test_prices_need_the_right_to_add_one_and_customers_the_right_to_see_usage() -> None:
    entry = catalog_rows.published()
    used(Organization.objects.create(name="Northwind"), entry, 10, 10)
    viewer = logged_in(operator_with("inference.view_modelentry", "inference.view_price"))
    pricer = logged_in(
        operator_with("inference.view_modelentry", "inference.add_price", email="p@svc.example")
    )

    assert viewer.post(page_of(entry, "price"), price_form()).status_code == 403
    assert "New price" not in text_of(viewer.get(page_of(entry)))
    shown = text_of(pricer.post(page_of(entry, "price"), price_form()))
    assert "0.15 → 0.20" in shown
    assert "Northwind" not in shown
    assert pricer.get(page_of(catalog_rows.retired(), "price")).status_code == 403
