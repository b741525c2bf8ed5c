"""Admin keys: what opens the management API, made by operators alone.

Their form, their secret and their digest are those of API keys (``accounts.keys.keys``), their prefix is
their own: neither kind opens what the other does. They are looked up in the database each time, because
the management API is no hot path: a revoked one is refused at once.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import changes
from accounts.keys.header import bearer_token
from accounts.keys.keys import (
    ADMIN_PREFIX,
    KeyStatus,
    digest_of,
    give_secret,
    shown_admin_part,
    status,
)
from accounts.models import AdminKey
from core import clock
from core.errors import InvalidCredential

MOST_KEYS: Final = 100
"""The most that work at once."""


@dataclass(frozen=True, slots=True)
class NewAdminKey:
    """A new admin key, with the only copy of its secret."""

    admin_key: AdminKey
    secret: str

    def __repr__(self) -> str:
        return f"NewAdminKey({self.admin_key.prefix}…)"


def mint(label: str, expires_at: datetime | None = None) -> NewAdminKey:
    """Make and store an admin key.

    Raises ``django.core.exceptions.ValidationError``, which names an invalid field.
    """
    return store_with_secret(AdminKey(label=label, expires_at=expires_at))


def store_with_secret(admin_key: AdminKey) -> NewAdminKey:
    """Give the unsaved ``admin_key`` a secret and store it. Raises as ``mint`` does."""
    secret = give_secret(admin_key, ADMIN_PREFIX)
    with transaction.atomic():
        admin_key.full_clean()
        require_room()
        admin_key.save(force_insert=True)
    return NewAdminKey(admin_key, secret)


def require_room() -> None:
    """Raise ``ValidationError`` when no further admin key may work.

    Call it in the transaction that stores the key: no other key is made until that ends.
    """
    changes.lock(changes.KEYS)
    working = AdminKey.objects.filter(revoked_at=None).exclude(expires_at__lte=clock.now())
    if working.count() >= MOST_KEYS:
        raise ValidationError(
            {"label": f"{MOST_KEYS} admin keys work, the most there may be. Revoke one first."}
        )


def revoke(admin_key: AdminKey) -> None:
    """End ``admin_key`` for good, at once. Revoking twice is fine."""
    with transaction.atomic():
        row = AdminKey.objects.select_for_update().get(pk=admin_key.pk)
        if row.revoked_at is None:
            row.revoked_at = clock.now()
            row.save(update_fields=["revoked_at"])
    admin_key.revoked_at = row.revoked_at


def authenticate(authorization: str | None) -> AdminKey:
    """The admin key in this ``Authorization`` value.

    Raises ``InvalidCredential`` for every problem of it, so that nothing can be guessed.
    """
    secret = bearer_token(authorization).decode("ascii", "replace")
    if shown_admin_part(secret) is None:
        raise InvalidCredential
    digests = [digest_of(secret, pepper) for pepper in settings.SVC_KEY_PEPPERS]
    found = AdminKey.objects.filter(digest__in=digests).first()
    if found is None or not any(hmac.compare_digest(found.digest, each) for each in digests):
        raise InvalidCredential
    if status(found) in (KeyStatus.REVOKED, KeyStatus.EXPIRED):
        raise InvalidCredential
    return found
