"""The admin's lists: what matters on each, one form of time, and queries that do not grow."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.audit import trail
from accounts.keys import admin_keys, keys
from accounts.keys.keys import mint
from accounts.models import ApiKey, Membership, Organization, Scope, User
from core.clock import now
from core.ids import request_id
from inference.models import Backend, ModelEntry
from inference.models.captures import CaptureReading, DiagnosticCapture
from speech.models import CloneUpload, VoiceClone
from tests.support.builders import catalog_rows, speech_rows
from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.pages.console import words
from usage.ledger import rows
from usage.models import Refusal, UsageRow

LISTS = sorted(model._meta.label_lower for model in admin.site._registry)
UNSTAMPED = {
    "auth.group",
    "inference.backend",
    "inference.modelentry",
    "speech.speechbackend",
    "speech.voice",
    "usage.speechday",
}
"""Lists that show no time."""
TIME = re.compile(r"\d+ \w{3} \d{4}, \d\d:\d\d:\d\d UTC")


def fill(number: int) -> None:
    """Write one row of every list, all of an organization, key and model of their own."""
    organization = Organization.objects.create(name=f"Northwind {number}")
    until = now() + timedelta(days=1)
    key = mint(organization, Scope.INFERENCE, f"checkout {number}", expires_at=until).api_key
    admin_keys.mint(f"pipeline {number}")
    user = User.objects.create_user(f"ada{number}@northwind.example", "x")
    Membership.objects.create(user=user, organization=organization)
    catalog_rows.published(f"acme/model-{number}")
    speaking = speech_rows.backend()
    speech_rows.voice(f"voice{number}", backend=speaking)
    clone = speech_rows.clone(organization)
    CloneUpload.objects.create(clone=clone, backend=speaking, upstream_name=f"copy{number}")
    owned = {"organization_id": str(organization.pk), "api_key_id": str(key.pk)}
    row = receipt(request_id=request_id(), **owned)
    rows.insert([row, speech_receipt(day=str(now().date()), **owned)], now())
    DiagnosticCapture.objects.create(
        request_id=row.request_id,
        organization_id=organization.pk,
        created_at=now(),
        expires_at=now() + timedelta(hours=1),
        content=b"",
    )
    CaptureReading.objects.create(
        request_id=row.request_id, organization_id=organization.pk, operator=user
    )
    Refusal.objects.create(
        request_id=request_id(),
        occurred_at=now(),
        organization_id=organization.pk,
        api_key_id=key.pk,
        status=404,
    )
    trail.record("looked at", organization, {})


def table(client: Client, label: str, query: str = "") -> list[str]:
    """The lines of a list, as text."""
    answer = client.get(f"/admin/{label.replace('.', '/')}/{query}")
    assert answer.status_code == 200
    body = answer.content.decode().partition('id="result_list"')[2].partition("</table>")[0]
    return [words(f"<tr {line}") for line in body.split("<tr")[2:]]


@pytest.mark.parametrize("label", LISTS)
def test_queries_do_not_grow_and_times_name_utc(operator: Client, label: str) -> None:
    counts = []
    for round_ in (range(3), range(3, 9)):
        for number in round_:
            fill(number)
        with CaptureQueriesContext(connection) as queries:
            shown = table(operator, label)
        counts.append(len(queries))

    assert counts[1] == counts[0]
    assert len(shown) >= (1 if label == "auth.group" else 9)
    text = " ".join(shown)
    assert not re.search(r"[ap]\.m\.|midnight|noon", text)
    assert bool(TIME.search(text)) is (label not in UNSTAMPED)


def a_second_later(identifier: str) -> str:
    """The list is in the order of these identifiers, which begin with a time (RFC 9562, 5.7)."""
    return f"req_{int(identifier.removeprefix('req_'), 16) + (1000 << 80):032x}"


def test_the_ledger_names_organization_key_and_outcome(operator: Client) -> None:
    fill(1)
    failed = receipt(request_id=a_second_later(request_id()), outcome="backend_timeout")
    rows.insert([failed], now())

    newest, older = table(operator, "usage.usagerow")

    assert "without a key" in newest
    assert "Northwind 1 checkout 1 acme/demo-8b" in older
    assert f"…{failed.request_id[-8:]}" in newest
    page = operator.get("/admin/usage/usagerow/").content.decode()
    assert 'svc-badge svc-bad">' in page
    key = ApiKey.objects.get()
    assert len(table(operator, "usage.usagerow", f"?q={key.pk}")) == 1


def test_changes_come_before_addresses_in_the_audit_log(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    changes = {f"field {number}": ("a", "b" * 100) for number in range(5)}
    trail.record("changed", organization, changes)

    line, *_ = table(operator, "accounts.auditentry")

    assert line.index("Northwind") < line.index("field 0: a → bbb")
    assert "b" * 61 not in line
    assert "and 2 more" in line


def test_an_offered_model_without_a_backend_stands_out(operator: Client) -> None:
    entry = catalog_rows.published("acme/alone")
    Backend.objects.update(enabled=False)

    (line,) = table(operator, "inference.modelentry")

    assert ModelEntry.objects.get() == entry
    assert line.startswith("acme/alone active none")


def test_standings_of_backends_and_clones_are_badges(operator: Client) -> None:
    catalog_rows.published("acme/one")
    Backend.objects.create(name="idle", base_url="http://127.0.0.1:9/v1")
    gone = speech_rows.clone(speech_rows.organization())
    VoiceClone.objects.filter(pk=gone.pk).update(deleted_at=now(), slot=None)

    lines = table(operator, "inference.backend")

    assert any("No deployment is enabled" in line for line in lines if line.startswith("idle"))
    assert any("ready" in line for line in lines if not line.startswith("idle"))
    assert "deleted" in table(operator, "speech.voiceclone")[0]


def test_an_organization_leads_to_its_working_keys(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    for number in range(3):
        mint(organization, Scope.INFERENCE, f"key {number}")
    keys.revoke(ApiKey.objects.first())  # type: ignore[arg-type]  # there are three

    (line,) = table(operator, "accounts.organization")

    assert line.startswith("Northwind enabled Standard Standard 2")
    query = f"?organization__id__exact={organization.pk}"
    assert len(table(operator, "accounts.apikey", query)) == 3


def test_a_key_is_rotated_and_revoked_on_its_own_page(operator: Client) -> None:
    organization = Organization.objects.create(name="Northwind")
    api_key = mint(organization, Scope.INFERENCE, "checkout").api_key
    address = f"/admin/accounts/apikey/{api_key.pk}/change/"
    page = operator.get(address).content.decode()

    assert 'name="action" value="rotate"' in page
    assert f'name="_selected_action" value="{api_key.pk}"' in page
    chosen = {"action": "revoke", "_selected_action": str(api_key.pk)}
    confirmation = operator.post("/admin/accounts/apikey/", chosen)
    assert "refused within a second" in words(confirmation.content.decode())
    keys.revoke(api_key)
    assert 'name="action"' not in operator.get(address).content.decode()


def test_a_row_has_its_time_with_milliseconds_and_utc(operator: Client) -> None:
    fill(1)
    row = UsageRow.objects.get()

    page = operator.get(f"/admin/usage/usagerow/{row.pk}/change/").content.decode()

    assert f"{row.occurred_at:%-d %b %Y, %H:%M:%S}.{row.occurred_at:%f}"[:-3] + " UTC" in page
