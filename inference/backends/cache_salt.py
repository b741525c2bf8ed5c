"""Salts what a model server keeps of prompts, so that organizations cannot measure each other's.

A server that has the beginning of a prompt in its prefix cache answers sooner. An organization that shares
the cache could measure by that whether another one has sent the same beginning. vLLM mixes ``cache_salt``
into the hashes of its cache, and asks for a salt that cannot be guessed, such as 43 characters of base64
(docs.vllm.ai, Automatic Prefix Caching, Cache Isolation for Security).
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import Final

from django.utils.crypto import salted_hmac

from inference.wire.dialects import PrefixCache

_KEY_SALT: Final = "inference.backends.cache_salt"
_RANDOM_BYTES: Final = 32


@lru_cache(maxsize=4096)
def salt_of(organization_id: str) -> str:
    """The salt of an organization: HMAC-SHA256 of its id under a key derived from ``SECRET_KEY``.

    It is the same in every worker and on every host that has the same secret, also after a restart.
    """
    return _text(salted_hmac(_KEY_SALT, organization_id, algorithm="sha256").digest())


def salted(extra_fields: bytes, cache: PrefixCache, organization_id: str) -> bytes:
    """Add the ``cache_salt`` of ``cache`` to encoded members of a JSON object; ``SHARED`` has none."""
    if cache is PrefixCache.SHARED:
        return extra_fields
    salt = (
        salt_of(organization_id)
        if cache is PrefixCache.ORGANIZATION
        else _text(secrets.token_bytes(_RANDOM_BYTES))
    )
    member = b'"cache_salt":"%b"' % salt.encode()
    return b"%b,%b" % (extra_fields, member) if extra_fields else member


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
