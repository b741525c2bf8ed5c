"""An operator reads the console of an organization: only reads, for an hour, and it is on record."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from accounts.keys.keys import mint
from accounts.models import ApiKey, AuditEntry, Membership, Organization, Scope, User
from core import clock
from tests.support.builders.receipts import receipt
from tests.support.pages.admin_forms import logged_in
from tests.support.pages.admin_forms import operator as operator_with
from tests.support.pages.console import words
from usage.ledger import rows

pytestmark = pytest.mark.django_db
RIGHTS = ("accounts.view_organization", "accounts.open_console")
BANNER = "You read the console of Globex as an operator"


@pytest.fixture
def customer() -> Organization:
    return Organization.objects.create(name="Globex")


@pytest.fixture
def user() -> User:
    """An operator who is also a member of an organization."""
    made = operator_with(*RIGHTS)
    own = Organization.objects.create(name="Own")
    Membership.objects.create(user=made, organization=own)
    return made


@pytest.fixture
def operator(user: User) -> Client:
    return logged_in(user)


def visit(client: Client, customer: Organization) -> Any:
    return client.post(f"/admin/customer/{customer.pk}/console/", follow=True)


def shown(client: Client, path: str = "") -> str:
    return words(client.get(f"/console/{path}", follow=True).content.decode())


def test_the_console_is_opened_from_the_customers_page_and_is_on_record(
    operator: Client, customer: Organization
) -> None:
    page = operator.get(f"/admin/customer/{customer.pk}/").content.decode()
    assert f'action="/admin/customer/{customer.pk}/console/"' in page
    mint(customer, Scope.INFERENCE, "checkout")

    assert BANNER in words(visit(operator, customer).content.decode())
    for path in ("keys", "usage", "requests", "models", "voices", "playground"):
        assert BANNER in shown(operator, path)
    assert "checkout" in shown(operator, "keys")

    entry = AuditEntry.objects.get(verb="console opened to read")
    assert (entry.organization_id, entry.actor) == (customer.pk, "operator@northwind.example")
    left = operator.post(f"/admin/customer/{customer.pk}/leave/")
    assert left["location"] == f"/admin/customer/{customer.pk}/"
    assert "Own" in shown(operator)
    assert BANNER not in shown(operator)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("keys/new", {"label": "mine", "scope": "inference"}),
        ("keys/{key}/rotate", {"overlap": "0"}),
        ("keys/{key}/revoke", {"label": "checkout"}),
        ("profile", {"time_zone": "Asia/Kolkata"}),
        ("password", {"old_password": "correct horse battery"}),
        ("requests", {"request_id": "req_1"}),
        ("playground/schema", {}),
        ("voices/ava/sample", {}),
        ("voices/clones/ava/delete", {}),
    ],
)
def test_nothing_can_be_changed_during_a_visit(
    operator: Client, customer: Organization, path: str, form: dict[str, str]
) -> None:
    key = mint(customer, Scope.INFERENCE, "checkout").api_key
    visit(operator, customer)
    entries = AuditEntry.objects.count()

    answer = operator.post(f"/console/{path.format(key=key.pk)}", form)

    assert answer.status_code == 403
    assert "Nothing was changed" in words(answer.content.decode())
    assert ApiKey.objects.get().revoked_at is None
    assert AuditEntry.objects.count() == entries


def test_the_apis_read_the_visited_organization_and_no_other(
    operator: Client, customer: Organization
) -> None:
    rows.insert([receipt(organization_id=str(customer.pk))], clock.now())

    def counted() -> int:
        file = operator.get("/console/usage/totals.csv", {"by": "model"}, follow=True)
        return len(b"".join(file).splitlines()) - 1

    assert counted() == 0
    visit(operator, customer)
    assert counted() == 1
    day = f"{clock.now():%Y-%m-%d}"
    summary = operator.get("/v1/usage", {"start": day, "end": f"{day}T23:59:59"}).json()
    assert summary["requests"] == 1
    assert operator.get("/console/own/").status_code == 404


def test_a_visit_ends_after_an_hour_at_the_logout_and_without_the_right(
    operator: Client, customer: Organization, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(operator, customer)
    user.user_permissions.clear()
    assert BANNER not in shown(operator)
    user.user_permissions.set(operator_with(*RIGHTS, email="2@svc.example").user_permissions.all())
    assert BANNER in shown(operator)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3601)
    assert BANNER not in shown(operator)
    monkeypatch.undo()
    operator.post("/console/logout")
    operator.force_login(user)
    assert BANNER not in shown(operator)


def test_a_visit_needs_its_own_right_and_a_form(
    operator: Client, customer: Organization, client: Client
) -> None:
    assert operator.get(f"/admin/customer/{customer.pk}/console/").status_code == 405
    viewer = logged_in(operator_with("accounts.view_organization", email="v@svc.example"))
    assert visit(viewer, customer).status_code == 403
    page = viewer.get(f"/admin/customer/{customer.pk}/").content.decode()
    assert "Read its console" not in page
    member = User.objects.create_user("m@svc.example", "correct horse battery")
    client.force_login(member)
    assert "/admin/login/" in visit(client, customer).redirect_chain[0][0]
    assert not AuditEntry.objects.filter(verb="console opened to read").exists()
