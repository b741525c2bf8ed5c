"""Admin keys in the operators' pages: made and revoked with the right permission, each secret shown once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.keys import admin_keys
from accounts.models import AdminKey, AuditEntry, User
from tests.support.pages.admin_forms import logged_in, operator

pytestmark = pytest.mark.django_db

KEYS = "/admin/accounts/adminkey/"
OPERATOR = "operator@northwind.example"
SECRET = re.compile(r'class="secret">([^<]+)</code>')
ONE_TIME = re.compile(r'name="one_time" value="([^"]+)"')


def with_rights(*verbs: str) -> Client:
    return logged_in(operator(*(f"accounts.{verb}_adminkey" for verb in verbs)))


def revoke(client: Client, *chosen: AdminKey, confirmed: bool = True) -> Any:
    fields = {"action": "revoke", "_selected_action": [row.pk for row in chosen]}
    return client.post(KEYS, fields | ({"confirmed": "yes"} if confirmed else {}), follow=True)


def test_a_key_is_made_and_its_secret_shown_once(ask: Any) -> None:
    client = with_rights("add", "view")
    form = client.get(f"{KEYS}add/").content.decode()
    (one_time,) = ONE_TIME.findall(form)
    fields = {"label": "pipeline", "expires_at_0": "", "expires_at_1": "", "one_time": one_time}
    made = client.post(f"{KEYS}add/", fields)
    (secret,) = SECRET.findall(made.content.decode())
    assert (made.status_code, made["cache-control"]) == (200, "no-store")
    assert ask("GET", "organizations", secret=secret).status_code == 200

    again = client.post(f"{KEYS}add/", fields).content.decode()
    assert "already. Its secret was shown once." in again
    row = AdminKey.objects.get(label="pipeline")
    for path in (KEYS, f"{KEYS}{row.pk}/change/", "/admin/"):
        page = client.get(path, follow=True).content.decode()
        assert secret not in page
        assert row.digest not in page
    entry = AuditEntry.objects.get(kind="admin key", subject_id=row.pk)
    assert (entry.actor, entry.source, entry.verb) == (OPERATOR, "admin", "minted")
    assert entry.changes["label"] == [None, "pipeline"]
    assert secret not in str(entry.changes)


def test_a_key_is_revoked_after_a_question(ask: Any, admin_key: admin_keys.NewAdminKey) -> None:
    client = with_rights("change", "view")
    row = admin_key.admin_key
    page = client.get(f"{KEYS}{row.pk}/change/").content.decode()
    assert "Revoke…" in page
    assert 'name="_save"' not in page
    asked = revoke(client, row, confirmed=False).content.decode()
    assert row.prefix in asked
    assert ask("GET", "organizations").status_code == 200
    for _ in range(2):
        assert revoke(client, row).status_code == 200
    assert ask("GET", "organizations").status_code == 401
    entry = AuditEntry.objects.get(kind="admin key", verb="revoked")
    assert (entry.actor, entry.source, entry.subject_id) == (OPERATOR, "admin", str(row.pk))
    assert "Revoke…" not in client.get(f"{KEYS}{row.pk}/change/").content.decode()


def test_each_act_needs_its_right(admin_key: admin_keys.NewAdminKey) -> None:
    row = admin_key.admin_key
    client = with_rights("view")
    assert client.get(KEYS).status_code == 200
    assert client.get(f"{KEYS}add/").status_code == 403
    assert client.post(f"{KEYS}add/", {"label": "evil"}).status_code == 403
    assert "Revoke…" not in client.get(f"{KEYS}{row.pk}/change/").content.decode()
    revoke(client, row)
    assert client.post(f"{KEYS}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    stranger = logged_in(User.objects.create_user("else@example.com", "x", is_staff=True))
    assert stranger.get(KEYS).status_code == 403
    assert AdminKey.objects.get().revoked_at is None


def test_nothing_of_a_key_is_changed_by_its_page(admin_key: admin_keys.NewAdminKey) -> None:
    client = logged_in(User.objects.create_superuser("root@example.com", "x"))
    before = AdminKey.objects.values().get()
    client.post(
        f"{KEYS}{admin_key.admin_key.pk}/change/",
        {"label": "another", "expires_at_0": "2099-01-01", "expires_at_1": "00:00"},
    )
    assert AdminKey.objects.values().get() == before
    assert (
        client.post(f"{KEYS}{admin_key.admin_key.pk}/delete/", {"post": "yes"}).status_code == 403
    )


def test_the_form_says_that_no_more_may_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_keys, "MOST_KEYS", 1)
    client = with_rights("add")
    fields = {"expires_at_0": "", "expires_at_1": ""}
    first = client.post(f"{KEYS}add/", {"label": "one", **fields})
    assert SECRET.search(first.content.decode())
    second = client.post(f"{KEYS}add/", {"label": "two", **fields}).content.decode()
    assert "1 admin keys work, the most there may be. Revoke one first." in second
    assert AdminKey.objects.count() == 1


@pytest.mark.parametrize("column", ["digest", "pepper"])
def test_no_list_is_filtered_by_a_secret_column(column: str) -> None:
    client = with_rights("view")
    assert client.get(f"{KEYS}?{column}__startswith=a").status_code == 400
