"""Moves the stamp that the key rings watch on every change of a key or of its organization.

``last_used_at`` is written with ``QuerySet.update``, which sends no signal, so that use alone
never invalidates a cache.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from accounts.changes import KEYS, changed
from accounts.models import ApiKey, Organization


@receiver([post_save, post_delete], sender=ApiKey)
@receiver([post_save, post_delete], sender=Organization)
def keys_changed(**_: Any) -> None:
    """Invalidate the cached keys of every worker."""
    changed(KEYS)
