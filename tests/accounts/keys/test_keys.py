"""The format and storage of keys, rotation and revocation."""

from __future__ import annotations

import re
import string
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from accounts.keys import keys
from accounts.keys.keys import KeyLimits, KeyStatus
from accounts.models import ApiKey, Organization, Scope
from core import clock

PREFIX_OF_SCOPE = [(Scope.INFERENCE, "svc_live_"), (Scope.READ, "svc_read_"), (Scope.SPEECH, "sk_")]
BODIES = st.text(alphabet=keys.ALPHABET, min_size=30, max_size=30)
PREFIXES = st.sampled_from([prefix for _, prefix in PREFIX_OF_SCOPE])


def secret_from(prefix: str, body: str) -> str:
    return prefix + body + keys.checksum(prefix + body)


@pytest.mark.parametrize(("scope", "prefix"), PREFIX_OF_SCOPE)
def test_a_key_of_each_scope_has_its_prefix_and_36_characters(
    organization: Organization, scope: Scope, prefix: str
) -> None:
    new = keys.mint(organization, scope, "laptop")
    assert new.secret.startswith(prefix)
    assert len(new.secret) == len(prefix) + 36
    assert set(new.secret[len(prefix) :]) <= set(string.ascii_letters + string.digits)
    assert new.api_key.prefix == new.secret[: len(prefix) + 6]
    assert keys.well_formed(new.secret) is scope


BODY = "AbC123" + "x" * 24 + "CHECKS"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        *((f"{prefix}{BODY}", f"{prefix}AbC123") for _, prefix in PREFIX_OF_SCOPE),
        (f" Bearer svc_live_{BODY}.", " Bearer svc_live_AbC123."),
        (f"sk_{BODY} svc_read_{BODY}", "sk_AbC123 svc_read_AbC123"),
        # A part of a secret, as a log may have cut it, is one too.
        ("svc_live_AbC1234567", "svc_live_AbC123"),
        ("svc_live_AbC123", "svc_live_AbC123"),
        ("svc_live_AbC", "svc_live_AbC"),
        ("task_AbC1234567", "task_AbC1234567"),
        ("req_0123456789abcdef", "req_0123456789abcdef"),
    ],
)
def test_secrets_in_a_text_are_cut_to_their_prefixes(text: str, cut: str) -> None:
    assert keys.cut_secrets(text) == cut


def test_the_checksum_is_the_one_the_documentation_shows() -> None:
    # CRC-32 of "123456789" is 0xCBF43926 in every catalogue of CRCs; 3421780262 in base 62.
    value = 0
    for character in keys.checksum("123456789"):
        value = value * 62 + keys.ALPHABET.index(character)
    assert value == 0xCBF43926
    assert len(keys.checksum("")) == 6


@given(PREFIXES, BODIES, st.integers(min_value=0), st.characters())
def test_a_key_with_one_character_changed_is_never_well_formed(
    prefix: str, body: str, position: int, character: str
) -> None:
    secret = secret_from(prefix, body)
    position %= len(secret)
    changed = secret[:position] + character + secret[position + 1 :]
    assert (keys.well_formed(changed) is None) == (changed != secret)


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "svc_live_" + "a" * 36,
        "' OR 1=1--",
        secret_from("sk_", "a" * 29),
        secret_from("sk_live_", "a" * 30),
        secret_from("SK_", "a" * 30),
        secret_from("sk_", "a" * 29 + "_"),
        secret_from("sk_", "a" * 30) + "\n",
        " " + secret_from("sk_", "a" * 30),
    ],
)
def test_a_text_that_is_no_key_is_not_well_formed(secret: str) -> None:
    assert keys.well_formed(secret) is None


def test_the_database_never_holds_the_secret(organization: Organization) -> None:
    new = keys.mint(organization, Scope.INFERENCE, "laptop")
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM accounts_apikey")
        text = repr(cursor.fetchall())
    assert new.secret not in text
    assert new.secret[len(new.api_key.prefix) :] not in text
    assert new.secret not in repr(new)
    assert not [pepper for pepper in settings.SVC_KEY_PEPPERS if pepper in text]


def test_rotation_keeps_scope_label_limits_and_class_and_ends_the_old_key_at_once(
    organization: Organization,
) -> None:
    own = KeyLimits(7, 9_000, "batch")
    old = keys.mint(organization, Scope.INFERENCE, "laptop", limits=own).api_key
    new = keys.rotate(old)
    assert keys.status(old) is KeyStatus.EXPIRED
    assert keys.status(new.api_key) is KeyStatus.ACTIVE
    assert new.api_key.pk != old.pk
    for name in ("organization", "scope", "label", *KeyLimits.__dataclass_fields__):
        assert getattr(new.api_key, name) == getattr(old, name)
    assert new.api_key.priority == "batch"


def test_a_key_that_has_an_end_is_not_rotated(organization: Organization) -> None:
    rotated = keys.mint(organization, Scope.READ).api_key
    keys.rotate(rotated, clock.now() + timedelta(hours=1))
    revoked = keys.mint(organization, Scope.READ).api_key
    keys.revoke(revoked)
    for ended in (rotated, revoked):
        with pytest.raises(keys.NotRotatable, match="Create a new key"):
            keys.rotate(ended)
    assert ApiKey.objects.count() == 3


def test_revoking_twice_keeps_the_first_moment(organization: Organization) -> None:
    api_key = keys.mint(organization, Scope.READ).api_key
    keys.revoke(api_key)
    first = api_key.revoked_at
    keys.revoke(api_key)
    assert first is not None
    assert api_key.revoked_at == first
    assert keys.status(api_key) is KeyStatus.REVOKED


def test_a_secret_scanner_finds_a_key_in_other_text_by_the_documented_form(
    organization: Organization,
) -> None:
    page = (settings.BASE_DIR / "docs/explain/keys.md").read_text()
    _, _, rest = page.partition("can recognise a key:\n\n    ")
    form = rest.partition("\n")[0]

    for scope in Scope:
        secret = keys.mint(organization, scope).secret
        found = re.search(form, f'curl -H "Authorization: Bearer {secret}" # 0123456789abcdef')
        assert found is not None
        assert found[0] == secret
        assert keys.well_formed(found[0]) is scope
