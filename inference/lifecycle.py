"""Draft, active, superseded, retired: the verbs that move an entry, and nothing else does.

    draft --publish--> active --supersede--> superseded --(shutdown date passes)--> retired
                          ^----withdraw---------'  ^-- move_shutdown

Inference contract, "States and transitions"; docs/explain/lifecycle.md gives the rules in words.
Retirement is a reading of the clock: no job has to run for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import models, transaction

from inference.models import Deployment, ModelEntry
from inference.pricing import price_in_force
from svc_project.lib import clock


class Status(models.TextChoices):
    DRAFT = "draft"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETIRED = "retired"


class LifecycleError(Exception):
    """A move that the rules forbid, told to a person; ``field`` is the one to mend, or empty."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def status(entry: ModelEntry, at: datetime) -> Status:
    """Where ``entry`` stands at ``at``; a shutdown date counts from its very moment on."""
    if entry.published_at is None:
        return Status.DRAFT
    if entry.superseded_at is None:
        return Status.ACTIVE
    if entry.shutdown_at is not None and entry.shutdown_at <= at:
        return Status.RETIRED
    return Status.SUPERSEDED


def publish(entry: ModelEntry) -> None:
    """Make a draft visible and served, for ever under this identifier.

    Needs a price in force and an enabled deployment on an enabled backend. Raises
    ``LifecycleError``.
    """
    now = clock.now()
    with _moving(entry, now) as (stored, _):
        if stored.published_at is not None:
            raise LifecycleError("published", f"{stored} is already published.")
        if price_in_force(stored, now) is None:
            raise LifecycleError("pricing", f"{stored} has no price in force. Add one first.")
        if not Deployment.objects.filter(
            weights=stored.weights_id, enabled=True, backend__enabled=True
        ).exists():
            raise LifecycleError(
                "backends", f"No enabled backend serves {stored.weights}. Add a deployment first."
            )
        stored.published_at = now


def supersede(
    entry: ModelEntry,
    successor: ModelEntry,
    shutdown_at: datetime | None = None,
    *,
    restoring: bool = False,
) -> None:
    """Name the successor of a published entry and, if known, when the entry stops serving.

    On a superseded entry it replaces both. ``restoring`` takes a shutdown date that has passed and
    a retired successor, for an entry that a catalog file brings back as it was. Raises
    ``LifecycleError``.
    """
    now = clock.now()
    with _moving(entry, now) as (stored, entries):
        if stored.published_at is None:
            raise LifecycleError("superseded_by", f"{stored} is a draft. Publish it first.")
        chosen = _successor(stored, successor, entries)
        if not restoring:
            _check_shutdown(shutdown_at, now)
            if status(chosen, now) is Status.RETIRED:
                raise LifecycleError("superseded_by", f"{chosen} is retired. Name one that serves.")
        stored.superseded_by = chosen
        stored.superseded_at = stored.superseded_at or now
        stored.shutdown_at = shutdown_at


def move_shutdown(entry: ModelEntry, shutdown_at: datetime | None) -> None:
    """Set, move or (``None``) take back the date on which a superseded entry stops serving.

    Raises ``LifecycleError``.
    """
    now = clock.now()
    with _moving(entry, now) as (stored, _):
        if stored.superseded_at is None:
            raise LifecycleError(
                "shutdown_at", f"{stored} has no successor. Supersede it to give it a date."
            )
        _check_shutdown(shutdown_at, now)
        stored.shutdown_at = shutdown_at


def withdraw(entry: ModelEntry) -> None:
    """Take the notice back: a superseded entry that still serves is active again.

    Raises ``LifecycleError``.
    """
    with _moving(entry, clock.now()) as (stored, _):
        if stored.superseded_at is None:
            raise LifecycleError("", f"{stored} is not superseded.")
        stored.superseded_by = stored.superseded_at = stored.shutdown_at = None


@contextmanager
def _moving(
    entry: ModelEntry, now: datetime
) -> Iterator[tuple[ModelEntry, dict[object, ModelEntry]]]:
    """The stored row to change and all rows by id, locked; saved, and ``entry`` follows, at the end.

    All rows, in one order: two moves at the same time could otherwise close a circle together.
    """
    with transaction.atomic():
        entries: dict[object, ModelEntry] = {
            row.pk: row for row in ModelEntry.objects.select_for_update().order_by("pk")
        }
        stored = entries.get(entry.pk)
        if stored is None:
            raise LifecycleError("", f"{entry} no longer exists.")
        if status(stored, now) is Status.RETIRED:
            raise LifecycleError("", f"{stored} is retired. Nothing about it can change.")
        yield stored, entries
        stored.save()
    entry.refresh_from_db()


def _check_shutdown(shutdown_at: datetime | None, now: datetime) -> None:
    if shutdown_at is not None and shutdown_at < now:
        raise LifecycleError("shutdown_at", "The shutdown date has passed. Give a later one.")


def _successor(
    stored: ModelEntry, successor: ModelEntry, entries: dict[object, ModelEntry]
) -> ModelEntry:
    """The stored row of ``successor``: published, and not itself followed by ``stored``."""
    chosen = entries.get(successor.pk)
    if chosen is None or chosen.published_at is None:
        raise LifecycleError("superseded_by", f"{successor} is not published.")
    if chosen.pk == stored.pk:
        raise LifecycleError("superseded_by", f"{stored} cannot be its own successor.")
    link: ModelEntry | None = chosen
    while link is not None:
        if link.superseded_by_id == stored.pk:
            raise LifecycleError(
                "superseded_by", f"{chosen} is itself superseded, in the end by {stored}."
            )
        link = entries.get(link.superseded_by_id)
    return chosen
