"""The audit log: who changed what, from where; written with the change, and never changed."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from accounts.keys import keys
from accounts.models import ApiKey, AuditEntry, Organization, Scope, User
from accounts.models.security import AuditEntryChanged
from inference.catalog import lifecycle
from inference.catalog.pricing import ensure_price
from inference.models import Price
from tests.support.builders import catalog_rows
from tests.support.pages.console import PASSWORD, member


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.create(name="Northwind")


@pytest.fixture
def operator(organization: Organization) -> User:
    return User.objects.create_superuser("root@northwind.example", PASSWORD)


@pytest.fixture
def operating(operator: User) -> Client:
    client = Client(REMOTE_ADDR="203.0.113.7")
    client.force_login(operator)
    return client


def last(verb: str) -> AuditEntry:
    return AuditEntry.objects.filter(verb=verb).latest("id")


def test_a_limit_changed_in_the_admin_has_its_entry(
    operating: Client, organization: Organization
) -> None:
    form = {
        "name": "Northwind",
        "plan": "enterprise",
        "priority": "interactive",
        "requests_per_minute": "50",
        "tokens_per_minute": "",
        "speech_requests_per_minute": "120",
        "speech_characters_per_day": "200000",
        "captures_allowed": "on",
        "memberships-TOTAL_FORMS": "0",
        "memberships-INITIAL_FORMS": "0",
    }
    answer = operating.post(f"/admin/accounts/organization/{organization.pk}/change/", form)
    assert answer.status_code == 302

    entry = last("changed")
    origin = ("root@northwind.example", "admin", "203.0.113.7")
    assert (entry.actor, entry.source, entry.address) == origin
    assert (entry.kind, entry.subject) == ("organization", "Northwind")
    assert entry.organization_id == organization.pk
    assert entry.changes == {
        "plan": ["standard", "enterprise"],
        "priority": ["standard", "interactive"],
        "requests_per_minute": [600, 50],
        "tokens_per_minute": [1_000_000, None],
    }


def test_the_life_of_a_key_in_the_console(organization: Organization) -> None:
    client = Client(REMOTE_ADDR="198.51.100.4")
    client.force_login(member(organization))

    page = client.post("/console/keys/new", {"scope": "inference", "label": "checkout"})
    first = ApiKey.objects.get()
    client.post(f"/console/keys/{first.pk}/rotate", {"overlap": "3600"})
    second = ApiKey.objects.exclude(pk=first.pk).get()
    client.post(f"/console/keys/{second.pk}/revoke", {"confirmation": second.prefix})

    entries = AuditEntry.objects.filter(kind="API key").order_by("id")
    told = [(entry.verb, entry.subject_id) for entry in entries]
    assert told == [
        ("minted", str(first.pk)),
        ("minted", str(second.pk)),
        ("rotated", str(first.pk)),
        ("revoked", str(second.pk)),
    ]
    assert {entry.actor for entry in entries} == {"ada@northwind.example"}
    assert {entry.source for entry in entries} == {"console"}
    assert {entry.address for entry in entries} == {"198.51.100.4"}
    assert {entry.organization_id for entry in entries} == {organization.pk}
    assert entries[2].changes["successor"] == [None, second.prefix]
    secret = page.content.decode().split('value="svc_live_')[1].split('"')[0]
    written = json.dumps(list(entries.values("subject", "changes")))
    assert secret not in written
    assert first.digest not in written


def test_prices_lifecycle_and_addresses_have_their_entries(db: None) -> None:
    served, successor = catalog_rows.published("acme/one"), catalog_rows.ready("acme/two")
    lifecycle.publish(successor)
    ensure_price(successor, "0.15", "0.70", "USD")
    lifecycle.supersede(served, successor)
    lifecycle.withdraw(served)
    backend = catalog_rows.backend("gpu-9", base_url="http://10.0.0.5:9000/v1")
    backend.base_url = "http://10.0.0.6:9000/v1"
    backend.save()

    appended = last("appended")
    assert appended.kind == "price"
    assert Decimal(appended.changes["input_per_mtok"][1]) == Decimal("0.15")
    assert last("published").subject_id == str(successor.pk)
    assert last("superseded").changes["superseded_by"][1].startswith(str(successor))
    assert last("made active again").subject_id == str(served.pk)
    moved = AuditEntry.objects.filter(kind="backend", verb="changed").latest("id")
    assert moved.changes == {"base_url": ["http://10.0.0.5:9000/v1", "http://10.0.0.6:9000/v1"]}


def test_a_deletion_records_the_deleted_values(db: None) -> None:
    draft = catalog_rows.draft()
    ensure_price(draft, "1", "2", "USD")
    identifier = draft.identifier
    draft.delete()

    entries = AuditEntry.objects.filter(verb="deleted").order_by("id")
    assert {entry.kind for entry in entries} >= {"model", "price"}
    told = next(entry for entry in entries if entry.kind == "model")
    assert told.changes["identifier"] == [identifier, None]
    assert not Price.objects.exists()


def test_changes_of_users_are_recorded_without_their_password(db: None) -> None:
    person = User.objects.create_user("ada@northwind.example", PASSWORD)
    person.is_staff = True
    person.save()
    person.set_password("another long one")
    person.save()
    person.last_login = person.created_at
    person.save(update_fields=["last_login"])
    person.is_staff = False
    person.save()
    person.is_active = False
    person.save()

    entries = AuditEntry.objects.filter(kind="user").order_by("id")
    assert [entry.verb for entry in entries] == [
        "created",
        "made operator",
        "given a new password",
        "no longer operator",
        "deactivated",
    ]
    assert entries[2].changes == {"password": ["not shown", "not shown"]}
    assert "pbkdf2" not in json.dumps([entry.changes for entry in entries])


def test_permissions_given_in_the_admin_are_recorded(operating: Client, operator: User) -> None:
    from django.contrib.auth.models import Group, Permission

    permission = Permission.objects.get(codename="view_usagerow")
    group = Group.objects.create(name="Support")
    group.permissions.add(permission)
    operator.groups.add(group)
    operator.groups.clear()

    told = AuditEntry.objects.filter(verb="permissions changed").order_by("id")
    assert [entry.changes for entry in told] == [
        {"permissions": [[], [str(permission)]]},
        {"groups": [[], ["Support"]]},
        {"groups": [["Support"], []]},
    ]


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_change_leaves_no_entry() -> None:
    organization = Organization.objects.create(name="Northwind")
    before = AuditEntry.objects.count()

    with transaction.atomic():
        keys.mint(organization, Scope.READ)
        transaction.set_rollback(True)

    assert AuditEntry.objects.count() == before


def test_a_save_that_changes_nothing_leaves_no_entry(organization: Organization) -> None:
    before = AuditEntry.objects.count()
    organization.save()
    ApiKey.objects.update(last_used_at=None)
    assert AuditEntry.objects.count() == before


def test_an_entry_is_never_changed_or_deleted(organization: Organization) -> None:
    entry = AuditEntry.objects.latest("id")
    for change in (
        entry.save,
        entry.delete,
        lambda: AuditEntry.objects.update(actor="nobody"),
        AuditEntry.objects.all().delete,
    ):
        with pytest.raises(AuditEntryChanged):
            change()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_auditentry SET actor = 'nobody'")


@pytest.mark.postgresql
def test_the_database_refuses_to_delete_an_entry(organization: Organization) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_auditentry")


def test_the_log_is_read_only_in_the_admin(operating: Client, organization: Organization) -> None:
    entry = AuditEntry.objects.filter(subject="Northwind").latest("id")
    page = "/admin/accounts/auditentry/"

    listed = operating.get(
        f"{page}?source={entry.source}&kind=organization&q=north"
    ).content.decode()
    shown = operating.get(f"{page}{entry.pk}/change/")

    assert "Northwind" in listed
    assert "requests_per_minute: none → 600" in shown.content.decode()
    assert 'name="_save"' not in shown.content.decode()
    assert operating.get(f"{page}add/").status_code == 403
    assert operating.post(f"{page}{entry.pk}/change/", {"actor": "x"}).status_code == 403
    assert operating.post(f"{page}{entry.pk}/delete/", {"post": "yes"}).status_code == 403
