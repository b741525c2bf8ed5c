"""API keys: the format, the digest, mint, rotate, revoke.

A key is a scope prefix, 30 random base62 characters (178 bits) and 6 base62 characters of CRC32
over everything before them, so that a mistyped key is refused without a look-up and a secret
scanner can tell a key from other text. Only a keyed digest is stored; see docs/explain/keys.md.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q, QuerySet

from accounts import changes
from accounts.audit import trail
from accounts.models import AdminKey, ApiKey, Organization, Scope
from core import clock
from core.names import cleaned

PREFIXES: Mapping[Scope, str] = MappingProxyType(
    {Scope.INFERENCE: "svc_live_", Scope.READ: "svc_read_", Scope.SPEECH: "sk_"}
)
"""The prefix of the keys of each scope (both contracts, Authentication)."""

ADMIN_PREFIX: Final = "svc_admin_"
"""The prefix of admin keys (``accounts.keys.admin_keys``), which no endpoint under /v1 takes."""

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_CHARACTERS = 30
CHECKSUM_CHARACTERS = 6
MOST_WORKING_KEYS = 200_000
"""The most working keys of all organizations, because every process holds them in memory."""
SHOWN_CHARACTERS = 6
"""How many of the random characters the display prefix shows: 36 of the 178 bits."""

_DAY = timedelta(days=1)
_SCOPES = {prefix: scope for scope, prefix in PREFIXES.items()}
_FORM = re.compile(
    rf"({'|'.join(_SCOPES)})[0-9A-Za-z]{{{RANDOM_CHARACTERS}}}([0-9A-Za-z]{{{CHECKSUM_CHARACTERS}}})"
)
_ADMIN_FORM = re.compile(rf"{ADMIN_PREFIX}[0-9A-Za-z]{{{RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}}")
_IN_TEXT = re.compile(
    rf"(?<![0-9A-Za-z_])((?:{'|'.join((*_SCOPES, ADMIN_PREFIX))})[0-9A-Za-z]{{{SHOWN_CHARACTERS}}})[0-9A-Za-z]+"
)


class KeyStatus(models.TextChoices):
    """Whether a key works, apart from its organization."""

    ACTIVE = "active", "Active"
    EXPIRING = "expiring", "Active until it expires"
    EXPIRED = "expired", "Expired"
    REVOKED = "revoked", "Revoked"


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """A key's own limits on top of its organization's, and its class instead of the organization's.

    ``None`` means none of its own.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    priority: str | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key, with the only copy of its secret."""

    api_key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"NewKey({self.api_key.prefix}…)"


class NotRotatable(ValueError):
    """The key has ended or has an end date; the message says what to do instead."""


class TooManyKeys(ValidationError):
    """The organization may have no further key; the message says why, and what to do instead."""


def checksum(text: str) -> str:
    """CRC32 of ``text`` as 6 base62 characters, most significant first."""
    number = zlib.crc32(text.encode())
    characters = []
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))


def well_formed(secret: str) -> Scope | None:
    """The scope in the prefix of ``secret``, or ``None`` when it cannot be a key of this gateway.

    Checks prefix, length, alphabet and checksum only: anyone can make a text that passes.
    """
    form = _FORM.fullmatch(secret)
    if form is None or checksum(secret[:-CHECKSUM_CHARACTERS]) != form[2]:
        return None
    return _SCOPES[form[1]]


def shown_part(secret: str) -> str | None:
    """The display prefix of ``secret``; None when it cannot be a key of this gateway."""
    scope = well_formed(secret)
    return None if scope is None else secret[: len(PREFIXES[scope]) + SHOWN_CHARACTERS]


def shown_admin_part(secret: str) -> str | None:
    """The display prefix of an admin key; None when ``secret`` cannot be one of this gateway."""
    made = secret[:-CHECKSUM_CHARACTERS]
    if _ADMIN_FORM.fullmatch(secret) is None or checksum(made) != secret[len(made) :]:
        return None
    return secret[: len(ADMIN_PREFIX) + SHOWN_CHARACTERS]


def cut_secrets(text: str) -> str:
    """Cut every secret in ``text``, whole or its beginning, to the display prefix of its key."""
    return _IN_TEXT.sub(r"\1", text)


def keyed_digest(secret: bytes, pepper: str) -> bytes:
    """HMAC-SHA256 (RFC 2104) of ``secret`` under ``pepper``.

    A fast function is enough because the 178 random bits of a secret cannot be guessed.
    """
    return hmac.digest(pepper.encode(), secret, hashlib.sha256)


def digest_of(secret: str, pepper: str) -> str:
    """``keyed_digest`` in hex, as the database stores it."""
    return keyed_digest(secret.encode(), pepper).hex()


def by_secret(secret: str) -> ApiKey | None:
    """The key with this secret, whether it works or has ended. Raises ``django.db.Error``."""
    digests = [digest_of(secret, pepper) for pepper in settings.SVC_KEY_PEPPERS]
    return ApiKey.objects.filter(digest__in=digests).select_related("organization").first()


def pepper_fingerprint(pepper: str) -> str:
    """Eight hex digits that tell peppers apart without revealing them."""
    return digest_of("pepper fingerprint", pepper)[:8]


def mint(
    organization: Organization,
    scope: Scope,
    label: str = "",
    *,
    limits: KeyLimits | None = None,
    expires_at: datetime | None = None,
) -> NewKey:
    """Make and store a new key.

    Raises ``TooManyKeys``, or ``django.core.exceptions.ValidationError`` that names an invalid
    field.
    """
    limits = limits or KeyLimits()
    return store_with_secret(
        ApiKey(
            organization=organization,
            scope=scope,
            label=label,
            requests_per_minute=limits.requests_per_minute,
            tokens_per_minute=limits.tokens_per_minute,
            priority=limits.priority,
            expires_at=expires_at,
        )
    )


def working() -> QuerySet[ApiKey]:
    """The keys of all organizations that have not ended."""
    return ApiKey.objects.exclude(_ended())


def of_organization(organization: Organization, *, live: bool) -> QuerySet[ApiKey]:
    """The working keys of ``organization``, or the ended ones, newest first."""
    every = ApiKey.objects.filter(organization=organization)
    return every.exclude(_ended()) if live else every.filter(_ended())


def require_room(organization: Organization, leaving: ApiKey | None = None) -> None:
    """Raise ``TooManyKeys`` when ``organization`` may have no further key.

    It may have ``SVC_KEYS_PER_ORGANIZATION`` that work, and make ``SVC_NEW_KEYS_PER_DAY`` in 24 hours:
    ended keys are kept with their usage. All organizations may have ``MOST_WORKING_KEYS`` that work.

    ``leaving`` is a key that ends when the new one is made. Call it in the transaction that stores
    the key: it locks the organization, so that no other key is made until the transaction ends.
    """
    _require_room_to_work(organization, leaving)
    made = ApiKey.objects.filter(organization=organization, created_at__gt=clock.now() - _DAY)
    if made.count() >= settings.SVC_NEW_KEYS_PER_DAY:
        raise TooManyKeys(
            f"{organization.name} has made {settings.SVC_NEW_KEYS_PER_DAY} keys in 24 hours, the "
            "most that are allowed. Try again later; an operator can raise SVC_NEW_KEYS_PER_DAY.",
            code="too_many_new_keys",
        )
    _require_room_in_memory(leaving)


def _require_room_to_work(organization: Organization, besides: ApiKey | None) -> None:
    """Lock ``organization``; raise ``TooManyKeys`` when no key may work beside its others."""
    changes.lock(changes.KEYS)
    Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)
    others = of_organization(organization, live=True)
    if besides is not None:
        others = others.exclude(pk=besides.pk)
    if others.count() >= settings.SVC_KEYS_PER_ORGANIZATION:
        raise TooManyKeys(
            f"{organization.name} has {settings.SVC_KEYS_PER_ORGANIZATION} keys that work, the "
            "most that are allowed. Revoke one that is not in use, or rotate one so that the old "
            "key ends now.",
            code="too_many_keys",
        )


def _require_room_in_memory(besides: ApiKey | None) -> None:
    """Raise ``TooManyKeys`` when no key of any organization may work beside the others."""
    others = working()
    if besides is not None:
        others = others.exclude(pk=besides.pk)
    if others.count() >= MOST_WORKING_KEYS:
        raise TooManyKeys(
            f"This gateway can have no more than {MOST_WORKING_KEYS} keys that work, and has them. "
            "Revoke one that is not in use, or rotate one so that the old key ends now.",
            code="too_many_keys_in_all",
        )


def _ended() -> Q:
    return Q(revoked_at__isnull=False) | Q(expires_at__lte=clock.now())


def require_right_to_end(api_key: ApiKey, until: datetime | None, *, may_postpone: bool) -> None:
    """Raise ``ValidationError`` when ``api_key`` may not end at ``until`` instead of its own end.

    A later end lets a key work that was rotated out, or leaked: that is as good as a new key. So it
    needs ``may_postpone``, and room among the keys that work. Call it in the transaction that
    stores the end: it locks the key, and the organization where the key would work again.
    """
    changes.lock(changes.KEYS)
    stored = ApiKey.objects.select_for_update().get(pk=api_key.pk)
    if stored.expires_at is None or (until is not None and until <= stored.expires_at):
        return
    if stored.revoked_at is not None:
        raise ValidationError("This key is revoked. Create a new key.")
    if not may_postpone:
        raise ValidationError(
            "This key may only end earlier: a later end needs the right to add keys."
        )
    if stored.expires_at <= clock.now():
        _require_room_to_work(stored.organization, stored)
        _require_room_in_memory(stored)


def store_with_secret(api_key: ApiKey, leaving: ApiKey | None = None) -> NewKey:
    """Give the unsaved ``api_key`` a secret and store it.

    ``leaving`` is as in ``require_room``. Raises ``TooManyKeys``, or
    ``django.core.exceptions.ValidationError`` that names an invalid field.
    """
    secret = give_secret(api_key, PREFIXES[Scope(api_key.scope)])
    with transaction.atomic():
        api_key.full_clean()
        require_room(api_key.organization, leaving)
        api_key.save(force_insert=True)
    return NewKey(api_key, secret)


def give_secret(key: ApiKey | AdminKey, prefix: str) -> str:
    """Set display prefix and digest of the unsaved ``key``; return its new secret."""
    body = prefix + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_CHARACTERS))
    secret = body + checksum(body)
    pepper = settings.SVC_KEY_PEPPERS[0]
    key.prefix = secret[: len(prefix) + SHOWN_CHARACTERS]
    key.digest = digest_of(secret, pepper)
    key.pepper = pepper_fingerprint(pepper)
    return secret


def ensure(
    organization: Organization, scope: Scope, label: str, **chosen: Any
) -> tuple[ApiKey, str | None]:
    """The working key of ``organization`` with this scope and label, which is made where there is none.

    Returns it with its secret, or with None where it was there; then ``chosen``, which ``mint`` takes, is
    ignored. Raises as ``mint`` does.
    """
    with transaction.atomic():
        changes.lock(changes.KEYS)
        Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)
        named = of_organization(organization, live=True).filter(scope=scope, label=label)
        if (found := named.first()) is not None:
            return found, None
        if (until := chosen.get("expires_at")) is not None and until <= clock.now():
            # It would work at no time, and each repetition would make another.
            raise ValidationError({"expires_at": "It has passed: the key would never work."})
        new = mint(organization, scope, label, **chosen)
    return new.api_key, new.secret


def rotate(api_key: ApiKey, old_valid_until: datetime | None = None) -> NewKey:
    """Make a successor with the same scope, label, limits and class; the old key then expires.

    ``old_valid_until``: the old key works until then; ``None`` ends it at once. Raises
    ``NotRotatable`` for a key that is revoked or has an end date: a successor would either outlive
    the date that somebody chose, or end by a rotation that it was not part of. Raises
    ``TooManyKeys`` where the old key stays and there is no room for both.
    """
    with transaction.atomic():
        changes.lock(changes.KEYS)
        old = ApiKey.objects.select_for_update().get(pk=api_key.pk)
        if old.revoked_at is not None:
            raise NotRotatable("This key is revoked. Create a new key.")
        if old.expires_at is not None:
            raise NotRotatable("The end of this key is set already. Create a new key.")
        now = clock.now()
        stays = old_valid_until is not None and old_valid_until > now
        new = store_with_secret(
            ApiKey(
                organization=old.organization,
                scope=old.scope,
                label=cleaned(old.label),
                requests_per_minute=old.requests_per_minute,
                tokens_per_minute=old.tokens_per_minute,
                priority=old.priority,
            ),
            leaving=None if stays else old,
        )
        old.expires_at = old_valid_until or now
        with trail.named("rotated", successor=new.api_key.prefix):
            old.save(update_fields=["expires_at"])
    api_key.expires_at = old.expires_at
    return new


def change(api_key: ApiKey, values: Mapping[str, Any]) -> None:
    """Set label, limits, class or end of ``api_key``.

    Only for callers who may make keys: the end may be later.

    Raises as ``require_right_to_end`` does, and ``ValidationError`` that names an invalid field.
    """
    with transaction.atomic():
        changes.lock(changes.KEYS)
        row = ApiKey.objects.select_for_update().get(pk=api_key.pk)
        if "expires_at" in values:
            require_right_to_end(row, values["expires_at"], may_postpone=True)
        for field, value in values.items():
            setattr(row, field, value)
        row.full_clean()
        row.save(update_fields=list(values))


def revoke(api_key: ApiKey) -> None:
    """End ``api_key`` for good; every process refuses it within a second. Revoking twice is fine."""
    with transaction.atomic():
        changes.lock(changes.KEYS)
        row = ApiKey.objects.select_for_update().get(pk=api_key.pk)
        if row.revoked_at is None:
            row.revoked_at = clock.now()
            row.save(update_fields=["revoked_at"])
    api_key.revoked_at = row.revoked_at


def status(api_key: ApiKey | AdminKey) -> KeyStatus:
    """The status of ``api_key`` now."""
    if api_key.revoked_at is not None:
        return KeyStatus.REVOKED
    if api_key.expires_at is None:
        return KeyStatus.ACTIVE
    return KeyStatus.EXPIRED if api_key.expires_at <= clock.now() else KeyStatus.EXPIRING
