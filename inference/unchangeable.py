"""What keeps published facts as they are on the way through the ORM.

The database refuses the same changes on its own (migration 0002); these say it in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    # The checker resolves them in the base classes' strings, which the linter does not read.
    from inference.models import ModelEntry, Price, WeightsRecord  # noqa: F401

if TYPE_CHECKING:
    pass

PINNED = frozenset({"id", "identifier", "weights", "weights_id", "published_at"})
"""What a published entry keeps for ever (inference contract, Versioning, rule 2)."""


class Unchangeable(Exception):
    """A change was asked for that would break what callers or the ledger rely on."""


class WeightsQuerySet(models.QuerySet["WeightsRecord"]):
    def update(self, **changes: Any) -> int:
        raise Unchangeable("A weights record never changes; add a new one.")


class EntryQuerySet(models.QuerySet["ModelEntry"]):
    def update(self, **changes: Any) -> int:
        if PINNED & changes.keys() and self.filter(published_at__isnull=False).exists():
            raise Unchangeable("A published entry keeps its identifier, weights and date.")
        return super().update(**changes)

    def delete(self) -> tuple[int, dict[str, int]]:
        if self.filter(published_at__isnull=False).exists():
            raise Unchangeable("A published entry cannot be deleted; supersede it.")
        return super().delete()


class PriceQuerySet(models.QuerySet["Price"]):
    def update(self, **changes: Any) -> int:
        raise Unchangeable("A price never changes; add a new one.")

    def delete(self) -> tuple[int, dict[str, int]]:
        if self.filter(entry__published_at__isnull=False).exists():
            raise Unchangeable("A price of a published entry stays; add a new one.")
        return super().delete()
