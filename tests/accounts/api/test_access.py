"""Who may call the management API: admin keys that work, and nothing else."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts.keys import admin_keys, keys
from accounts.login import throttle
from accounts.models import AdminKey, AuditEntry, Organization, Scope
from core import clock

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_an_admin_key_is_made_listed_and_revoked_by_command(ask: Any) -> None:
    made = run("create_admin_key", "pipeline")
    assert made["key"].startswith("svc_admin_")
    assert ask("GET", "organizations", secret=made["key"]).status_code == 200
    assert {"pipeline", "terraform"} == {each["label"] for each in run("list_admin_keys")}
    run("revoke_admin_key", made["prefix"])
    assert ask("GET", "organizations", secret=made["key"]).status_code == 401
    stored = json.dumps(list(AdminKey.objects.values()), default=str)
    assert made["key"] not in stored
    verbs = AuditEntry.objects.filter(kind="admin key", subject_id=made["admin_key_id"])
    assert list(verbs.order_by("id").values_list("verb", flat=True)) == ["minted", "revoked"]


def test_no_such_admin_key_is_said() -> None:
    with pytest.raises(CommandError, match="0 admin keys"):
        call_command("revoke_admin_key", "svc_admin_zzzzzz")


def test_an_expired_admin_key_is_refused(ask: Any) -> None:
    new = admin_keys.mint("old", clock.now() + timedelta(hours=1))
    assert ask("GET", "organizations", secret=new.secret).status_code == 200
    AdminKey.objects.filter(pk=new.admin_key.pk).update(expires_at=clock.now())
    assert ask("GET", "organizations", secret=new.secret).status_code == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["", "nothing", "organizations/", "keys/none", "catalog/x"])
def test_an_unknown_path_is_not_found_in_the_words_of_the_rest(
    ask: Any, client: Client, method: str, path: str
) -> None:
    answer = ask(method, path)
    assert answer.status_code == 404
    elsewhere = client.get("/v1/nothing").json()
    assert answer.json() == elsewhere
    assert ask(method, path, secret="svc_admin_wrong").json() == elsewhere


def test_a_wrong_key_is_refused_in_the_words_of_the_rest(ask: Any, client: Client) -> None:
    elsewhere = client.get("/v1/models")
    for path in ("organizations", "users", "users/a@b.co", "keys", "catalog", "prices"):
        answer = ask("GET", path, secret="svc_admin_wrong")
        assert (answer.status_code, answer["www-authenticate"]) == (401, "Bearer")
        assert answer.json() == elsewhere.json()


@pytest.mark.parametrize("scope", Scope.values)
def test_no_api_key_opens_the_management_api(
    ask: Any, organization: Organization, scope: str
) -> None:
    secret = keys.mint(organization, Scope(scope)).secret
    for method, path in (
        ("GET", "organizations"),
        ("PUT", "organizations/Evil"),
        ("DELETE", "organizations/Acme"),
        ("GET", "keys?organization=Acme"),
        ("POST", "keys"),
        ("GET", "users"),
        ("PUT", "users/evil@example.com"),
        ("POST", "users/evil@example.com/link"),
        ("GET", "catalog"),
        ("PUT", "catalog"),
        ("GET", "prices"),
    ):
        answer = ask(method, path, {}, secret=secret)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"
    assert list(Organization.objects.values_list("name", "disabled_at")) == [("Acme", None)]


def test_an_admin_key_opens_nothing_under_v1(
    client: Client, admin_key: admin_keys.NewAdminKey
) -> None:
    bearer = {"authorization": f"Bearer {admin_key.secret}"}
    for path in ("/v1/models", "/v1/usage", "/v1/usage/export"):
        assert client.get(path, headers=bearer).status_code == 401, path


def test_a_pepper_that_is_not_the_first_still_opens(
    ask: Any, admin_key: admin_keys.NewAdminKey, settings: Any
) -> None:
    settings.SVC_KEY_PEPPERS = [
        "a new pepper of more than thirty-two characters",
        *settings.SVC_KEY_PEPPERS,
    ]
    assert ask("GET", "organizations").status_code == 200
    settings.SVC_KEY_PEPPERS = settings.SVC_KEY_PEPPERS[:1]
    assert ask("GET", "organizations").status_code == 401


def test_wrong_keys_have_to_wait_and_right_ones_do_not(ask: Any) -> None:
    for _ in range(throttle.ADMIN_KEYS.free):
        assert ask("GET", "organizations", secret="svc_admin_wrong").status_code == 401
    answer = ask("GET", "organizations", secret="svc_admin_wrong")
    assert answer.status_code == 429
    assert int(answer["retry-after"]) > 0
    assert ask("GET", "organizations").status_code == 200
