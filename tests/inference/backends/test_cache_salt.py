"""The salt of a request for the server's prefix cache: whose requests share it."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from inference.backends.cache_salt import salt_of, salted
from inference.wire.dialects import PrefixCache

ACME, OTHER = "0190-acme", "0190-other"


def member(cache: PrefixCache, organization_id: str = ACME, fields: bytes = b"") -> Any:
    found = json.loads(b"{%b}" % salted(fields, cache, organization_id))
    return found.get("cache_salt")


@pytest.mark.parametrize("fields", [b"", b'"top_k":40'])
@pytest.mark.parametrize("cache", PrefixCache)
def test_the_salt_is_one_more_member_beside_the_operators(
    cache: PrefixCache, fields: bytes
) -> None:
    found = json.loads(b"{%b}" % salted(fields, cache, ACME))

    assert ("top_k" in found) is bool(fields)
    assert ("cache_salt" in found) is (cache is not PrefixCache.SHARED)


def test_an_organization_has_one_salt_and_no_other_has_it() -> None:
    own = member(PrefixCache.ORGANIZATION)

    assert own == member(PrefixCache.ORGANIZATION)
    assert own != member(PrefixCache.ORGANIZATION, OTHER)
    assert len(urlsafe_b64decode(f"{own}=")) == 32, "256 bits, which nobody guesses"


def test_each_request_has_a_salt_of_its_own_where_nothing_is_shared() -> None:
    salts = {member(PrefixCache.NONE) for _ in range(100)}

    assert len(salts) == 100
    assert {len(urlsafe_b64decode(f"{salt}=")) for salt in salts} == {32}


def test_every_host_with_the_secret_makes_the_same_salt_and_no_other_host_does(
    settings: Any,
) -> None:
    settings.SECRET_KEY = "one-secret"
    salt_of.cache_clear()
    # What any process computes: nothing of it depends on this one.
    key = hashlib.sha256(b"inference.backends.cache_salt" + b"one-secret").digest()
    expected = hmac.digest(key, ACME.encode(), "sha256")
    own = salt_of(ACME)
    settings.SECRET_KEY = "another-secret"
    salt_of.cache_clear()
    other = salt_of(ACME)
    salt_of.cache_clear()

    assert urlsafe_b64decode(f"{own}=") == expected
    assert other != own
