"""*History* in the admin: the audit entries of an object and of the rows on its page."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Membership, Organization, User
from core.clock import now
from inference.models import Price
from tests.support.builders import catalog_rows
from tests.support.pages.admin_forms import logged_in, operator
from tests.support.pages.console import words

pytestmark = pytest.mark.django_db


def history(client: Client, path: str) -> str:
    return words(client.get(f"/admin/{path}/history/").content.decode())


def test_a_price_is_in_the_history_of_its_model() -> None:
    entry, other = catalog_rows.published("acme/one"), catalog_rows.published("acme/two")
    price = Price.objects.create(
        entry=entry,
        input_per_mtok="0.4",
        output_per_mtok="0.00000007",
        currency="USD",
        effective_from=now(),
    )
    client = logged_in(operator("inference.view_modelentry", "inference.view_price"))
    blind = logged_in(operator("inference.view_modelentry", email="2@svc.example"))

    shown = history(client, f"inference/modelentry/{entry.pk}")

    assert f"price {price}: appended" in shown
    assert "output_per_mtok: none → 0.00000007" in shown
    assert str(price) not in history(client, f"inference/modelentry/{other.pk}")
    assert str(price) not in history(blind, f"inference/modelentry/{entry.pk}")


def test_a_membership_stays_in_the_history_of_both_when_it_is_removed() -> None:
    organization = Organization.objects.create(name="Northwind")
    user = User.objects.create_user("ada@northwind.example", "x")
    Membership.objects.create(user=user, organization=organization).delete()
    seen = ("accounts.view_organization", "accounts.view_user", "accounts.view_membership")
    client = logged_in(operator(*seen))

    for path in (f"accounts/organization/{organization.pk}", f"accounts/user/{user.pk}"):
        shown = history(client, path)
        assert "membership ada@northwind.example in Northwind: created" in shown
        assert "membership ada@northwind.example in Northwind: deleted" in shown
