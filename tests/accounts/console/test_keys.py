"""Keys in the console: list, make, rotate, revoke; a secret is shown once."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client

from accounts.keys import keys
from accounts.keys.keys import KeyStatus, NewKey, mint
from accounts.models import ApiKey, Organization, Scope
from core import clock
from tests.support.pages.console import words

SECRET = re.compile(r"(?:svc_live_|svc_read_|sk_)[0-9A-Za-z]{36}")


def secret_in(page: str) -> str:
    found = SECRET.findall(page)
    # Perhaps twice: alone, and in the command that sets a variable.
    assert len(set(found)) == 1
    secret: str = found[0]
    return secret


def test_keys_of_all_scopes_are_listed_and_those_of_others_are_not(
    console: Client, organization: Organization, stranger: Organization
) -> None:
    own = [mint(organization, scope, f"for {scope}") for scope in Scope]
    foreign = mint(stranger, Scope.INFERENCE, "a stranger's")

    page = console.get("/console/northwind/keys").content.decode()

    for made in own:
        assert made.api_key.prefix in page
        assert made.api_key.label in page
        assert made.secret not in page
    assert foreign.api_key.prefix not in page
    assert "a stranger" not in page


def test_a_label_that_misleads_is_an_error_of_the_form(console: Client) -> None:
    answer = console.post("/console/northwind/keys/new", {"scope": "read", "label": "a\u202eb"})
    assert answer.status_code == 200
    assert "Leave out control and invisible characters" in answer.content.decode()
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    ("scope", "prefix"), [("inference", "svc_live_"), ("read", "svc_read_"), ("speech", "sk_")]
)
def test_a_new_key_shows_its_secret_once(
    console: Client, organization: Organization, scope: str, prefix: str
) -> None:
    answer = console.post("/console/northwind/keys/new", {"scope": scope, "label": "  finance  "})

    secret = secret_in(answer.content.decode())
    assert secret.startswith(prefix)
    assert answer["cache-control"] == "no-store"
    api_key = ApiKey.objects.get(organization=organization)
    assert api_key.label == "finance"
    assert keys.digest_of(secret, settings.SVC_KEY_PEPPERS[0]) == api_key.digest
    for page in (
        "/console/northwind/keys",
        "/console/northwind/keys/new",
        f"/console/northwind/keys/{api_key.pk}/rotate",
    ):
        assert secret not in console.get(page).content.decode()


def hidden(page: str, name: str) -> str:
    found = re.search(rf'<input type="hidden" name="{name}" value="([^"]+)"', page)
    assert found is not None, f"no field {name}"
    return found[1]


def test_a_form_sent_again_makes_no_second_key(console: Client, organization: Organization) -> None:
    token = hidden(console.get("/console/northwind/keys/new").content.decode(), "one_time")
    form = {"scope": "inference", "label": "checkout", "one_time": token}
    secret = secret_in(console.post("/console/northwind/keys/new", form).content.decode())

    again = console.post("/console/northwind/keys/new", form)

    (api_key,) = ApiKey.objects.filter(organization=organization)
    assert again.status_code == 409
    said = words(again.content.decode())
    assert f"{api_key.prefix}… when it was sent before. No second key was made." in said
    assert secret not in again.content.decode()
    assert f'href="/console/northwind/keys/{api_key.pk}"' in again.content.decode()


def test_each_form_makes_a_key_of_its_own(console: Client, organization: Organization) -> None:
    tokens = [
        hidden(console.get("/console/northwind/keys/new").content.decode(), "one_time")
        for _ in range(2)
    ]
    for token in tokens:
        form = {"scope": "inference", "label": "checkout", "one_time": token}
        assert console.post("/console/northwind/keys/new", form).status_code == 200

    assert ApiKey.objects.filter(organization=organization).count() == 2


def test_the_id_of_a_new_key_cannot_be_chosen(console: Client, organization: Organization) -> None:
    chosen = "00000000-0000-0000-0000-000000000000"
    console.post("/console/northwind/keys/new", {"scope": "read", "label": "x", "one_time": chosen})

    assert str(ApiKey.objects.get(organization=organization).pk) != chosen


@pytest.mark.parametrize("overlap", [0, 604_800])
def test_rotating_makes_a_successor_and_ends_the_old_key_when_asked(
    console: Client, key: NewKey, overlap: int
) -> None:
    before = clock.now()

    answer = console.post(
        f"/console/northwind/keys/{key.api_key.pk}/rotate", {"overlap": str(overlap)}
    )

    secret = secret_in(answer.content.decode())
    old = ApiKey.objects.get(pk=key.api_key.pk)
    assert old.expires_at is not None
    wanted = timedelta(seconds=overlap)
    assert before + wanted <= old.expires_at <= clock.now() + wanted
    assert keys.status(old) is (KeyStatus.EXPIRING if overlap else KeyStatus.EXPIRED)
    new = ApiKey.objects.exclude(pk=old.pk).get()
    assert (new.scope, new.label) == (old.scope, old.label)
    assert secret.startswith(new.prefix)


@pytest.mark.parametrize("typed", ["checkout", "PREFIX", "PREFIX…"])
def test_a_key_is_revoked_by_typing_its_label_or_prefix(
    console: Client, key: NewKey, typed: str
) -> None:
    answer = console.post(
        f"/console/northwind/keys/{key.api_key.pk}/revoke",
        {"confirmation": typed.replace("PREFIX", key.api_key.prefix)},
        follow=True,
    )

    assert "is revoked" in words(answer.content.decode())
    key.api_key.refresh_from_db()
    assert keys.status(key.api_key) is KeyStatus.REVOKED


@pytest.mark.parametrize("typed", ["", "…", "checkou", "svc_live_"])
def test_anything_else_revokes_nothing(console: Client, key: NewKey, typed: str) -> None:
    console.post(f"/console/northwind/keys/{key.api_key.pk}/revoke", {"confirmation": typed})

    key.api_key.refresh_from_db()
    assert key.api_key.revoked_at is None


def test_a_key_without_a_label_takes_its_prefix_only(
    console: Client, organization: Organization
) -> None:
    unnamed = mint(organization, Scope.READ).api_key

    console.post(f"/console/northwind/keys/{unnamed.pk}/revoke", {"confirmation": " "})
    unnamed.refresh_from_db()
    assert unnamed.revoked_at is None

    console.post(f"/console/northwind/keys/{unnamed.pk}/revoke", {"confirmation": unnamed.prefix})
    unnamed.refresh_from_db()
    assert unnamed.revoked_at is not None


@pytest.mark.parametrize("verb", ["rotate", "revoke"])
def test_another_organizations_key_is_not_found(
    console: Client, stranger: Organization, verb: str
) -> None:
    foreign = mint(stranger, Scope.INFERENCE, "theirs").api_key
    absent = uuid.uuid4()
    fields = {"overlap": "0", "confirmation": "theirs"}

    for method in (console.get, console.post):
        found = method(f"/console/northwind/keys/{foreign.pk}/{verb}", fields)
        nothing = method(f"/console/northwind/keys/{absent}/{verb}", fields)
        assert found.status_code == nothing.status_code == 404
        assert foreign.prefix not in found.content.decode()
    foreign.refresh_from_db()
    assert foreign.expires_at is None
    assert foreign.revoked_at is None
