"""The catalog in memory, which every request and every catalog view reads.

A worker holds one ``CatalogSnapshot`` and replaces it as a whole when the catalog's change stamp
changes (``accounts.changes``). Future prices and shutdown dates are in the snapshot and take effect
by the clock, so no reload has to happen on time (a price as long as the database is seen to answer:
``Catalog.pricing_time``).
"""

from __future__ import annotations

import re
import time
from decimal import Decimal

from accounts.changes import CATALOG, ChangeWatcher, watcher
from accounts.models import Organization
from accounts.snapshots import SnapshotHolder
from core.clock import iso_milliseconds
from core.errors import InternalError, ModelNotFound, ModelRetired
from inference.catalog.pricing import CERTAIN
from inference.catalog.snapshot import CatalogSnapshot, PublishedModel, read_snapshot

_CERTAIN_SECONDS = CERTAIN.total_seconds()
_SHOWN_CHARACTERS = 200
_NAME = re.compile(r"(?!.{0,80}[A-Za-z0-9]{20})[\w./:@+-]{1,100}", re.ASCII)
"""The form of a model's name. Other text where a name belongs is kept nowhere.

No name has twenty letters and digits in a row; keys of most services do, whichever they are.
"""


class Catalog(SnapshotHolder[CatalogSnapshot]):
    """This process's catalog."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        super().__init__(watcher, CATALOG, CatalogSnapshot(models={}))

    def read(self) -> CatalogSnapshot:
        return read_snapshot()

    def resolve(self, identifier: str, now: float) -> PublishedModel:
        """Return the model that ``identifier`` names; ``now`` in seconds since the epoch.

        Raises ``ModelNotFound`` for an identifier that was never published and ``ModelRetired``
        for one past its shutdown date, and ``InternalError`` while no catalog could be read since the
        start: the model may be there, and a client would believe a 404.
        """
        model = self.snapshot.models.get(identifier)
        if model is None:
            if not self.is_loaded:
                raise InternalError
            raise ModelNotFound(
                _missing_message(identifier[:_SHOWN_CHARACTERS]),
                kept=_missing_message(identifier if _NAME.fullmatch(identifier) else "…"),
            )
        if model.shutdown_epoch <= now:
            retired = ModelRetired(_retired_message(model, self._serving_successor(model, now)))
            retired.model = model.id
            raise retired
        return model

    def pricing_time(self, now: float) -> float:
        """Return the moment whose prices hold at ``now``; both in seconds since the epoch.

        That is ``now``, unless the database has not answered for longer than prices are certain: one
        that began since may have been withdrawn, and the price before it holds on.
        """
        return now - max(0.0, self.age - _CERTAIN_SECONDS)

    def _serving_successor(self, model: PublishedModel, now: float) -> str | None:
        """Return the first successor that is not retired."""
        models = self.snapshot.models
        while model.superseded_by is not None:
            successor = models.get(model.superseded_by)
            if successor is None:
                return None
            if not successor.is_retired(now):
                return successor.id
            model = successor
        return None


def _missing_message(identifier: str) -> str:
    return f"The model '{identifier}' does not exist. GET /v1/models lists the models that do."


def _retired_message(model: PublishedModel, successor: str | None) -> str:
    on = f" on {iso_milliseconds(model.shutdown_at)}" if model.shutdown_at else ""
    advice = f"Use its successor '{successor}'. " if successor else ""
    return (
        f"The model '{model.id}' was retired{on}. {advice}"
        "GET /v1/models lists the models that serve."
    )


catalog = Catalog(watcher)
"""The catalog of this process."""


def example_model(organization: Organization) -> str | None:
    """Return an active model for examples of code; None when a backend serves none.

    It is the cheapest of those with tools and structured output, so that every example works, or
    where there is none the cheapest of all.
    """
    now = time.time()
    serving = [
        model
        for model in catalog.current().models.values()
        if model.deployments and model.superseded_by is None and not model.is_retired(now)
    ]
    found = min(serving, key=lambda model: _preference(model, now), default=None)
    return None if found is None else found.id


def _preference(model: PublishedModel, now: float) -> tuple[bool, Decimal, str]:
    price = model.price_at(now)
    is_able = model.tool_calling and model.structured_output
    return not is_able, price.input + price.output, model.id
