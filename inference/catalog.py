"""The catalog in memory: what every request and every catalog read looks at.

A worker holds one ``CatalogSnapshot`` and replaces it as a whole when the stamp of the catalog
moves (``accounts.changes``). Prices and shutdown dates that lie ahead are in the snapshot and take
effect by the clock, so that no reload has to happen on time.
"""

from __future__ import annotations

from threading import Lock

from django.db import Error

from accounts.changes import CATALOG, ChangeWatcher, watcher
from inference.snapshot import CatalogSnapshot, PublishedModel, read_snapshot
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.errors import ModelNotFound, ModelRetired

_SHOWN_CHARACTERS = 200
_FRESH_SECONDS = 5.0


class Catalog:
    """This process's catalog; ``snapshot`` is replaced as a whole and never changed."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        self.snapshot = CatalogSnapshot(models={})
        self._watcher = watcher
        self._loading = Lock()
        self._loaded = False
        watcher.subscribe(CATALOG, self.load)

    def load(self) -> None:
        """Read the catalog from the database.

        Raises ``django.db.Error`` and keeps the old snapshot when the database does not answer;
        the watcher then calls again.
        """
        # One at a time: an older reading must not take the place of a newer one.
        with self._loading:
            self.snapshot = read_snapshot()
        self._loaded = True

    @property
    def is_loaded(self) -> bool:
        """Whether it was read at least once."""
        return self._loaded

    def current(self) -> CatalogSnapshot:
        """The snapshot for a view that may wait.

        While the watcher runs it costs nothing. In a process without one (runserver, a shell) the
        catalog is read anew each time.
        """
        if not (self._loaded and self._watcher.is_fresh(_FRESH_SECONDS)):
            try:
                self.load()
            except Error:
                if not self._loaded:
                    raise
        return self.snapshot

    def resolve(self, identifier: str, now: float) -> PublishedModel:
        """The model that ``identifier`` names; ``now`` in seconds since the epoch.

        Raises ``ModelNotFound`` for an identifier that was never published and ``ModelRetired``
        for one past its shutdown date.
        """
        model = self.snapshot.models.get(identifier)
        if model is None:
            raise ModelNotFound(
                f"The model '{identifier[:_SHOWN_CHARACTERS]}' does not exist. "
                "GET /v1/models lists the models that do."
            )
        if model.shutdown_epoch <= now:
            raise ModelRetired(_retired_message(model, self._serving_successor(model, now)))
        return model

    def _serving_successor(self, model: PublishedModel, now: float) -> str | None:
        """The first of the successors that still serves."""
        models = self.snapshot.models
        while model.superseded_by is not None:
            successor = models.get(model.superseded_by)
            if successor is None:
                return None
            if not successor.is_retired(now):
                return successor.id
            model = successor
        return None


def _retired_message(model: PublishedModel, successor: str | None) -> str:
    on = f" on {iso_milliseconds(model.shutdown_at)}" if model.shutdown_at else ""
    advice = f"Use its successor '{successor}'. " if successor else ""
    return (
        f"The model '{model.id}' was retired{on}. {advice}"
        "GET /v1/models lists the models that serve."
    )


catalog = Catalog(watcher)
"""The catalog of this process."""
