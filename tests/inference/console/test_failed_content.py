"""An owner decides whether the content of failed requests is kept, and reads it; nobody else does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client

from accounts.models import AuditEntry, Membership, Organization, Role, User
from core.clock import now
from inference.chat.captures import CapturedContent, _cipher, prune
from inference.models import FailedContent
from tests.support.pages.console import Insert, words

ORGANIZATION = "/console/northwind/organization"


@pytest.fixture
def owner(person: User) -> User:
    """The person, as an owner."""
    Membership.objects.filter(user=person).update(role=Role.OWNER)
    return person


@pytest.fixture
def failed(organization: Organization, insert: Insert) -> str:
    """A failed request with its content; its id."""
    row = insert("2026-11-03T10:00", outcome="backend_error", http_status=502)
    keep(row.request_id, organization)
    return row.request_id


def keep(request_id: str, organization: Organization, **columns: Any) -> FailedContent:
    content = CapturedContent('{"messages": "<b>secret</b>"}', "half an ans", 29, 11)
    moment = now()
    return FailedContent.objects.create(
        **{
            "request_id": request_id,
            "organization_id": organization.pk,
            "created_at": moment,
            "expires_at": moment + timedelta(hours=1),
            "content": _cipher().seal(msgspec.json.encode(content)),
            **columns,
        }
    )


def page(console: Client, request_id: str) -> str:
    return console.get(f"/console/northwind/requests/{request_id}").content.decode()


def read(console: Client, request_id: str) -> Any:
    return console.post(f"/console/northwind/requests/{request_id}")


def test_an_owner_reads_the_content_and_each_reading_is_recorded(
    console: Client, owner: User, organization: Organization, failed: str
) -> None:
    shown = page(console, failed)
    assert "Show the content" in shown
    assert "secret" not in shown
    assert not AuditEntry.objects.filter(verb="read").exists()

    answers = [read(console, failed) for _ in range(2)]

    for answer in answers:
        said = answer.content.decode()
        assert "&lt;b&gt;secret&lt;/b&gt;" in said
        assert "half an ans" in said
        assert answer["cache-control"] == "no-store"
    entries = AuditEntry.objects.filter(verb="read")
    assert [(each.actor, each.subject_id, each.organization_id) for each in entries] == [
        (owner.email, failed, organization.pk)
    ] * 2
    assert "secret" not in str([each.changes for each in entries])


def test_a_member_sees_that_there_is_content_and_not_the_content(
    console: Client, failed: str
) -> None:
    shown = words(page(console, failed))

    assert "An owner of Northwind can read it here." in shown
    assert "Show the content" not in shown
    assert read(console, failed).status_code == 404
    assert not AuditEntry.objects.filter(verb="read").exists()


def test_there_is_nothing_to_read_of_others_nor_after_its_time(
    console: Client, owner: User, stranger: Organization, insert: Insert, failed: str
) -> None:
    foreign = keep("req_foreign", stranger)
    past = insert("2026-11-03T11:00", outcome="backend_error").request_id
    keep(past, owner.memberships.get().organization, expires_at=now())
    without = insert("2026-11-03T12:00", outcome="backend_error").request_id

    for request_id in (foreign.pk, past, without, "req_none"):
        assert read(console, request_id).status_code == 404
    assert "Show the content" not in page(console, past)
    assert prune() == 1
    assert set(FailedContent.objects.values_list("pk", flat=True)) == {foreign.pk, failed}
    # An owner of one organization is a member of another.
    Membership.objects.create(user=owner, organization=stranger)
    assert console.post(f"/console/strangers-ltd/requests/{foreign.pk}").status_code == 404


def test_an_unreadable_content_says_so(
    console: Client, owner: User, failed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FailedContent.objects.update(content=b"sealed with another key")

    assert "a key that this gateway no longer has" in read(console, failed).content.decode()


def test_an_owner_switches_it_on_and_off_within_the_retention(
    console: Client, owner: User, organization: Organization
) -> None:
    assert 'value="0"' in console.get(ORGANIZATION).content.decode()

    assert console.post(ORGANIZATION, {"hours": "12"}, follow=True).status_code == 200
    too_long = console.post(ORGANIZATION, {"hours": "73"})

    organization.refresh_from_db()
    assert organization.failed_content_hours == 12
    assert "At most 72 hours." in too_long.content.decode()
    entry = AuditEntry.objects.get(verb="changed", subject_id=str(organization.pk))
    assert (entry.actor, entry.changes) == (owner.email, {"failed_content_hours": [0, 12]})


def test_a_member_sees_the_switch_and_cannot_move_it(
    console: Client, organization: Organization
) -> None:
    shown = console.get(ORGANIZATION).content.decode()

    assert "Not kept" in shown
    assert 'name="hours"' not in shown
    assert console.post(ORGANIZATION, {"hours": "12"}).status_code == 403
    organization.refresh_from_db()
    assert organization.failed_content_hours == 0
