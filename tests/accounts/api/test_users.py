"""Users through the management API: made, listed, joined to organizations, disabled; operators are spared."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry, Organization, User

pytestmark = pytest.mark.django_db
ADA = "users/ada@acme.example"


@pytest.fixture
def ada(ask: Any, organization: Organization) -> Any:
    made = ask("PUT", "users/Ada@Acme.example", {"organizations": ["Acme"]})
    assert made.status_code == 201
    return made.json()


def test_put_makes_a_user_once_and_then_changes_what_is_sent(ask: Any, ada: Any) -> None:
    assert (ada["email"], ada["organizations"]) == ("ada@acme.example", ["Acme"])
    assert (ada["active"], ada["operator"], ada["superuser"]) == (True, False, False)
    ask("PUT", "organizations/Blue", {})
    moved = ask("PUT", ADA, {"organizations": ["Blue"]})
    assert (moved.status_code, moved.json()["organizations"]) == (200, ["Blue"])
    assert ask("GET", f"users/{ada['user_id']}").json() == ask("GET", ADA).json() == moved.json()


def test_an_organization_without_an_owner_gets_one_and_no_second(ask: Any, ada: Any) -> None:
    assert ada["owner_of"] == []
    for _ in range(2):
        assert ask("PATCH", ADA, {"owner_of": ["Acme"]}).json()["owner_of"] == ["Acme"]
    made = ask("PUT", "users/bo@acme.example", {"organizations": ["Acme"]}).json()

    for user, owned, said in (
        (made["user_id"], ["Acme"], "Acme has an owner"),
        (ADA.partition("/")[2], [], "is an owner of Acme"),
        (made["user_id"], ["No"], "there is no organization 'No'"),
    ):
        refused = ask("PATCH", f"users/{user}", {"owner_of": owned})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "owner_of")
        assert said in refused.json()["error"]["message"]

    entry = AuditEntry.objects.get(verb="made an owner")
    assert entry.changes == {"role": ["member", "owner"]}
    both = {"organizations": ["Blue"], "owner_of": ["Blue"]}
    ask("PUT", "organizations/Blue", {})
    assert ask("PUT", "users/cy@blue.example", both).json()["owner_of"] == ["Blue"]
    assert ask("PATCH", f"users/{made['user_id']}", {"owner_of": ["Blue"]}).status_code == 400


def test_lists_are_of_all_users_or_of_an_organization(ask: Any, ada: Any) -> None:
    ask("PUT", "organizations/Blue", {})
    ask("PUT", "users/bo@blue.example", {"organizations": ["Blue"]})

    def listed(query: str) -> list[str]:
        return sorted(each["email"] for each in ask("GET", f"users?{query}").json()["data"])

    assert listed("limit=500") == ["ada@acme.example", "bo@blue.example"]
    assert listed("organization=Blue") == ["bo@blue.example"]
    assert ask("GET", "users?limit=1").json()["next_cursor"]


def test_a_user_ends_disabled_and_can_return(ask: Any, ada: Any) -> None:
    for _ in range(2):
        ended = ask("DELETE", ADA)
        assert (ended.status_code, ended.json()["active"]) == (200, False)
    assert ask("POST", f"{ADA}/link").status_code == 400
    assert ask("PATCH", ADA, {"active": True}).json()["active"] is True


def test_each_change_is_audited_once_with_before_and_after(
    ask: Any, ada: Any, admin_key: Any
) -> None:
    for _ in range(2):
        ask("PUT", ADA, {"organizations": ["Acme"], "active": False})
    ask("PATCH", ADA, {"organizations": []})
    entries = list(AuditEntry.objects.filter(kind__in=("user", "membership")).order_by("id"))
    assert [(entry.kind, entry.verb) for entry in entries] == [
        ("user", "created"),
        ("membership", "created"),
        ("user", "deactivated"),
        ("membership", "deleted"),
    ]
    assert entries[2].changes == {"is_active": [True, False]}
    actor = f"admin key {admin_key.admin_key.prefix} (terraform)"
    assert {(entry.actor, entry.source) for entry in entries} == {(actor, "api")}


def test_a_one_time_link_sets_the_password_and_is_shown_once(
    ask: Any, ada: Any, client: Client
) -> None:
    made = ask("POST", f"{ADA}/link")
    assert (made.status_code, made["cache-control"]) == (201, "no-store")
    place = made.json()["link"].partition("testserver")[2]
    form = client.get(place, follow=True)
    password = "correct horse battery"
    client.post(form.redirect_chain[-1][0], {"new_password1": password, "new_password2": password})
    assert User.objects.get(email="ada@acme.example").check_password(password)
    entry = AuditEntry.objects.get(verb="given a one-time link")
    assert list(entry.changes) == ["until"]
    assert made.json()["link"] not in ask("GET", ADA).content.decode()


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
def test_a_link_ends_when_its_user_becomes_an_operator(
    ask: Any, ada: Any, client: Client, flag: str
) -> None:
    place = ask("POST", f"{ADA}/link").json()["link"].partition("testserver")[2]
    assert client.get(place, follow=True).redirect_chain
    User.objects.filter(email="ada@acme.example").update(**{flag: True})
    assert not client.get(place, follow=True).redirect_chain


@pytest.mark.parametrize("flags", [{"is_staff": True}, {"is_superuser": True}])
def test_no_admin_key_changes_an_operator(
    ask: Any, organization: Organization, flags: dict[str, bool]
) -> None:
    User.objects.create_user("root@example.com", "first password", **flags)
    before = User.objects.values().get()
    for method, path, body in (
        ("PUT", "users/ROOT@example.com", {"organizations": ["Acme"]}),
        ("PATCH", "users/root@example.com", {"active": False}),
        ("DELETE", "users/root@example.com", None),
        ("POST", "users/root@example.com/link", None),
    ):
        refused = ask(method, path, body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "user"), method
        assert "operator" in refused.json()["error"]["message"]
    assert User.objects.values().get() == before
    assert not User.objects.get().organizations.exists()
    assert not AuditEntry.objects.filter(source="api").exists()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "param"),
    [
        ("PUT", "users/new@acme.example", {}, 400, "organizations"),
        ("PUT", "users/new@acme.example", {"organizations": []}, 400, "organizations"),
        ("PUT", "users/new@acme.example", {"organizations": ["No"]}, 400, "organizations"),
        ("PUT", "users/new", {"organizations": ["Acme"]}, 400, "email"),
        ("PUT", "users/a%00b@acme.example", {"organizations": ["Acme"]}, 400, "user"),
        ("PUT", ADA, {"operator": True}, 400, "operator"),
        ("PUT", ADA, {"superuser": True}, 400, "superuser"),
        ("PUT", ADA, {"is_staff": True}, 400, "is_staff"),
        ("PUT", ADA, {"password": "correct horse battery"}, 400, "password"),
        ("PUT", ADA, {"active": "maybe"}, 400, "active"),
        ("PATCH", "users/no@acme.example", {}, 404, "user"),
        ("DELETE", "users/11111111-2222-4333-8444-555555555555", None, 404, "user"),
        ("PUT", "users/11111111-2222-4333-8444-555555555555", {}, 404, "user"),
        ("POST", f"{ADA}/link", {"hours": 5}, 400, "hours"),
        ("GET", "users?organization=No", None, 404, "organization"),
        ("GET", "users?email=ada@acme.example", None, 400, "email"),
        ("POST", "users", {}, 405, None),
    ],
)
def test_what_is_refused_names_its_field_and_changes_nothing(
    ask: Any, ada: Any, method: str, path: str, body: Any, status: int, param: str | None
) -> None:
    written = AuditEntry.objects.count()
    answer = ask(method, path, body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert AuditEntry.objects.count() == written
    assert list(User.objects.values_list("email", "is_staff")) == [("ada@acme.example", False)]
