"""Organizations, limits and keys through the management API: what each call answers and leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.keys import keys
from accounts.models import ApiKey, AuditEntry, Organization, Scope

pytestmark = pytest.mark.django_db
NO_SUCH_ID = "11111111-2222-4333-8444-555555555555"
KEY = {"organization": "Acme", "scope": "inference", "label": "shop"}
LEO = {"id": "leo", "engine_voice": "en-us+m3"}


def test_put_makes_an_organization_once_and_then_changes_what_is_sent(ask: Any) -> None:
    first = ask("PUT", "organizations/Blue/West", {"plan": "enterprise", "requests_per_minute": 7})
    assert first.status_code == 201
    again = ask("PUT", "organizations/Blue/West", {"requests_per_minute": "unlimited"})
    assert again.status_code == 200
    shown = again.json()
    assert (shown["name"], shown["plan"]) == ("Blue/West", "enterprise")
    assert shown["requests_per_minute"] == "unlimited"
    by_id = ask("GET", f"organizations/{shown['organization_id']}")
    assert by_id.json() == ask("GET", "organizations/Blue/West").json() == shown


def test_a_second_equal_put_writes_no_audit_entry(ask: Any) -> None:
    ask("PUT", "organizations/Blue", {"tokens_per_minute": 9})
    written = AuditEntry.objects.count()
    assert ask("PUT", "organizations/Blue", {"tokens_per_minute": 9}).status_code == 200
    assert AuditEntry.objects.count() == written


def test_an_organization_ends_disabled_and_can_return(ask: Any, organization: Organization) -> None:
    assert ask("DELETE", "organizations/Acme").json()["status"] == "disabled"
    assert Organization.objects.filter(name="Acme").exists()
    assert ask("PATCH", "organizations/Acme", {"disabled": False}).json()["status"] == "enabled"


def test_every_change_names_the_admin_key(ask: Any, admin_key: Any) -> None:
    ask("PUT", "organizations/Blue", {})
    ask("DELETE", "organizations/Blue")
    entries = AuditEntry.objects.filter(kind="organization").order_by("id")
    assert [entry.verb for entry in entries] == ["created", "disabled"]
    actor = f"admin key {admin_key.admin_key.prefix} (terraform)"
    assert {(entry.actor, entry.source) for entry in entries} == {(actor, "api")}
    assert {entry.address for entry in entries} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "param"),
    [
        ("PATCH", "organizations/Nobody", {}, 404, "organization"),
        ("PUT", f"organizations/{NO_SUCH_ID}", {}, 404, "organization"),
        ("PUT", "organizations/" + "x" * 121, {}, 400, "name"),
        ("PUT", "organizations/Acme", {"plan": "gold"}, 400, "plan"),
        ("PUT", "organizations/Blue?dry_run=true", {}, 400, "dry_run"),
        ("PATCH", "organizations/Acme?dry_run=true", {"plan": "enterprise"}, 400, "dry_run"),
        ("DELETE", "organizations/Acme?dry_run=true", None, 400, "dry_run"),
        ("PUT", "catalog?dry_run=true&dry_run=false", {"voices": [LEO]}, 400, "dry_run"),
        ("PUT", "organizations/a%0Db", {}, 400, "name"),
        ("PUT", "organizations/%1B[2J", {}, 400, "name"),
        ("PUT", "organizations/a%E2%80%AEb", {}, 400, "name"),
        ("PUT", "organizations/Acme%20", {}, 400, "name"),
        ("POST", "keys", {**KEY, "organization": "Acme "}, 404, "organization"),
        ("POST", "keys", {**KEY, "expires_at": "2020-01-01T00:00:00Z"}, 400, "expires_at"),
        ("POST", "keys", {**KEY, "expires_at": "2099-01-01T00:00:00"}, 400, "expires_at"),
        ("PUT", "users/a@acme.example", {"organizations": ["Acme "]}, 400, "organizations"),
        ("PUT", "organizations/Acme", {"priority": "urgent"}, 400, "priority"),
        ("PUT", "organizations/Acme", {"priority": None}, 400, "priority"),
        ("PUT", "organizations/Acme", {"requests_per_minute": 0}, 400, "requests_per_minute"),
        ("PUT", "organizations/Acme", {"requests_per_minute": True}, 400, "requests_per_minute"),
        ("PUT", "organizations/Acme", {"requests_per_minute": None}, 400, "requests_per_minute"),
        ("PUT", "organizations/Acme", {"request_per_minute": 5}, 400, "request_per_minute"),
        ("PUT", "organizations/Acme", {"disabled": "yes"}, 400, "disabled"),
        ("PUT", "organizations/Acme", {"diagnostic_captures": 1}, 400, "diagnostic_captures"),
        ("POST", "keys", {"organization": "Acme", "scope": "read", "label": 5}, 400, "label"),
        ("POST", f"keys/{NO_SUCH_ID}/rotate", {"overlap_seconds": "5"}, 400, "overlap_seconds"),
        ("PUT", "users/a@b.example", {"organizations": [1]}, 400, "organizations[0]"),
        ("PUT", "users/a@b.example", {"organizations": ["Acme", None]}, 400, "organizations[1]"),
        ("PUT", "users/a@b.example", {"organizations": ["Acme", "\0"]}, 400, "organizations[1]"),
        ("PUT", "users/a@b.example", {"organizations": ["Acme"] * 101}, 400, "organizations"),
        ("PUT", "users/a@b.example", {"organizations": "Acme"}, 400, "organizations"),
        (
            "PUT",
            "organizations/Acme",
            b'{"plan":"standard","pl\\u0061n":"enterprise"}',
            400,
            "plan",
        ),
        ("PUT", "catalog", b'{"models":[],"voices":[{"id":"a","id":"b"}]}', 400, "voices[0].id"),
        ("PUT", "organizations/Acme", b"[1]", 400, None),
        ("PUT", "organizations/Acme", b"{", 400, None),
        ("PUT", "organizations/Acme", b"\xff", 400, None),
        ("PUT", "organizations/Acme", b"[" * 60_000, 400, None),
        ("PUT", "organizations/a%00b", {}, 400, "organization"),
        ("GET", "keys?organization=a%00b", None, 400, "organization"),
        ("POST", "organizations", {}, 405, None),
        ("GET", "organizations?limit=0", None, 400, "limit"),
        ("GET", "organizations?limit=501", None, 400, "limit"),
        ("GET", "organizations?cursor=abc", None, 400, "cursor"),
        ("GET", "organizations?page=2", None, 400, "page"),
        ("GET", "keys", None, 400, "organization"),
        ("GET", "keys?organization=Nobody", None, 404, "organization"),
        ("GET", "keys?organization=Acme&status=new", None, 400, "status"),
        ("POST", "keys", {"organization": "Acme", "scope": "read"}, 400, "label"),
        ("POST", "keys", {"organization": "Acme", "scope": "admin", "label": "x"}, 400, "scope"),
        ("POST", "keys", {**KEY, "organization": "No"}, 404, "organization"),
        ("GET", f"keys/{NO_SUCH_ID}", None, 404, "api_key_id"),
        ("POST", f"keys/{NO_SUCH_ID}/rotate", {"overlap_seconds": -1}, 400, "overlap_seconds"),
        ("PATCH", f"keys/{NO_SUCH_ID}", {}, 404, "api_key_id"),
        ("DELETE", f"keys/{NO_SUCH_ID}", None, 404, "api_key_id"),
    ],
)
def test_what_is_refused_names_its_field_and_changes_nothing(
    ask: Any,
    organization: Organization,
    method: str,
    path: str,
    body: Any,
    status: int,
    param: str | None,
) -> None:
    written = AuditEntry.objects.count()
    answer = ask(method, path, body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert AuditEntry.objects.count() == written


def test_a_condition_that_nothing_evaluates_is_refused(
    client: Client, admin_key: Any, organization: Organization
) -> None:
    for condition in ("if-match", "if-unmodified-since"):
        headers = {"authorization": f"Bearer {admin_key.secret}", condition: '"1"'}
        answer = client.delete("/manage/v1/organizations/Acme", headers=headers)
        assert (answer.status_code, Organization.objects.get().disabled_at) == (400, None)


def test_pages_hold_every_organization_once(ask: Any) -> None:
    for name in "abcde":
        ask("PUT", f"organizations/{name}", {})
    seen, query = [], "limit=2"
    while query:
        page = ask("GET", f"organizations?{query}").json()
        seen += [each["name"] for each in page["data"]]
        assert len(page["data"]) <= 2
        query = page["next_cursor"] and f"limit=2&cursor={page['next_cursor']}"
    assert sorted(seen) == list("abcde")


def test_a_key_is_made_once_by_its_label_and_its_secret_is_shown_once(
    ask: Any, organization: Organization
) -> None:
    body = {"organization": "Acme", "scope": "read", "label": "ci", "requests_per_minute": 5}
    made = ask("POST", "keys", body)
    assert made.status_code == 201
    key = made.json()
    assert keys.well_formed(key["key"]) is Scope.READ
    again = ask("POST", "keys", body)
    assert (again.status_code, again.json()) == (200, {**key, "key": None})
    assert ask("GET", f"keys/{key['api_key_id']}").json() == {**key, "key": None}
    assert key["key"] not in ask("GET", "keys?organization=Acme").content.decode()


def test_a_key_is_rotated_and_revoked(ask: Any, organization: Organization) -> None:
    old = keys.mint(organization, Scope.INFERENCE, "shop").api_key
    new = ask("POST", f"keys/{old.pk}/rotate", {"overlap_seconds": 60})
    assert new.status_code == 201
    assert new.json()["key"].startswith("svc_live_")
    assert ask("POST", f"keys/{old.pk}/rotate", {}).status_code == 400
    for _ in range(2):
        revoked = ask("DELETE", f"keys/{new.json()['api_key_id']}")
        assert (revoked.status_code, revoked.json()["status"]) == (200, "revoked")
    ended = ask("GET", "keys?organization=Acme&status=ended").json()["data"]
    assert [each["api_key_id"] for each in ended] == [new.json()["api_key_id"]]
    assert ApiKey.objects.count() == 2


def test_a_key_is_changed_in_what_is_sent(ask: Any, organization: Organization) -> None:
    key = keys.mint(organization, Scope.READ, "ci").api_key
    body = {"label": "build", "tokens_per_minute": 5, "expires_at": "2099-01-01T00:00:00Z"}
    changed = ask("PATCH", f"keys/{key.pk}", body)
    assert changed.status_code == 200
    assert changed.json().items() >= {**body, "expires_at": "2099-01-01T00:00:00.000Z"}.items()
    cleared = ask("PATCH", f"keys/{key.pk}", {"tokens_per_minute": None}).json()
    assert (cleared["label"], cleared["tokens_per_minute"]) == ("build", None)
    for wrong in ({"tokens_per_minute": 0}, {"scope": "speech"}, {"expires_at": "soon"}):
        refused = ask("PATCH", f"keys/{key.pk}", wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, *wrong)
    assert ask("GET", f"keys/{key.pk}").json() == cleared


def test_a_revoked_key_gets_no_later_end(ask: Any, organization: Organization) -> None:
    key = keys.mint(organization, Scope.READ, "ci").api_key
    ask("PATCH", f"keys/{key.pk}", {"expires_at": "2099-01-01T00:00:00Z"})
    ask("DELETE", f"keys/{key.pk}")
    assert ask("PATCH", f"keys/{key.pk}", {"expires_at": None}).status_code == 400
