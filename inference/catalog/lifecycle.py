"""The lifecycle of a model entry; only the functions here change its state.

    draft --publish--> active --supersede--> superseded --(shutdown date passes)--> retired
                          ^----withdraw---------'  ^-- move_shutdown

Inference contract, "States and transitions"; docs/explain/lifecycle.md gives the rules in words.
Retirement follows from the clock: no job has to run for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from urllib.parse import quote

from django.db import models, transaction

from core import clock
from inference.catalog.pricing import price_in_force
from inference.catalog.snapshot import PublishedModel
from inference.models import Deployment, ModelEntry


class Status(models.TextChoices):
    DRAFT = "draft"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETIRED = "retired"


class LifecycleError(Exception):
    """A change that the rules forbid; ``field`` is the form field to correct, or empty."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def status(entry: ModelEntry, at: datetime) -> Status:
    """Return the status of ``entry`` at ``at``; at its shutdown date itself it is retired."""
    if entry.published_at is None:
        return Status.DRAFT
    if entry.superseded_at is None:
        return Status.ACTIVE
    if entry.shutdown_at is not None and entry.shutdown_at <= at:
        return Status.RETIRED
    return Status.SUPERSEDED


def missing(draft: ModelEntry, at: datetime) -> Iterator[LifecycleError]:
    """Yield everything that a draft lacks to be published at ``at``."""
    if price_in_force(draft, at) is None:
        yield LifecycleError("pricing", f"{draft} has no price in force. Add one first.")
    if not Deployment.objects.filter(
        weights=draft.weights_id, enabled=True, draining=False, backend__enabled=True
    ).exists():
        yield LifecycleError(
            "backends", f"No enabled backend serves {draft.weights}. Add a deployment first."
        )


def publish(entry: ModelEntry) -> None:
    """Publish a draft, permanently under this identifier.

    Requires a price in force and an enabled deployment on an enabled backend. Raises
    ``LifecycleError``.
    """
    now = clock.now()
    with _moving(entry, now) as (stored, _):
        if stored.published_at is not None:
            raise LifecycleError("published", f"{stored} is already published.")
        for problem in missing(stored, now):
            raise problem
        stored.published_at = now


def supersede(
    entry: ModelEntry,
    successor: ModelEntry,
    shutdown_at: datetime | None = None,
    *,
    restoring: bool = False,
) -> None:
    """Set the successor of a published entry and, if known, when the entry stops serving.

    On a superseded entry this replaces both. ``restoring`` allows a shutdown date in the past and a
    retired successor, for an entry that a catalog file recreates. Raises ``LifecycleError``.
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
    """Set, move or (``None``) clear the date on which a superseded entry stops serving.

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
    """Make a superseded entry that still serves active again.

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
    """Lock all rows; yield the stored row and all rows by id; then save it and refresh ``entry``.

    All rows are locked, in one order: two concurrent changes could otherwise close a circle.
    """
    with transaction.atomic():
        entries: dict[object, ModelEntry] = {
            row.pk: row for row in ModelEntry.objects.select_for_update().order_by("pk")
        }
        stored = entries.get(entry.pk)
        if stored is None:
            raise LifecycleError("", f"{entry} no longer exists.")
        if status(stored, now) is Status.RETIRED:
            raise LifecycleError("", f"{stored} is retired and can no longer be changed.")
        yield stored, entries
        stored.save()
    entry.refresh_from_db()


def _check_shutdown(shutdown_at: datetime | None, now: datetime) -> None:
    if shutdown_at is not None and shutdown_at < now:
        raise LifecycleError("shutdown_at", "The shutdown date has passed. Give a later one.")


def _successor(
    stored: ModelEntry, successor: ModelEntry, entries: dict[object, ModelEntry]
) -> ModelEntry:
    """Return the stored row of ``successor``; it must be published and not lead back to ``stored``."""
    chosen = entries.get(successor.pk)
    if chosen is None or chosen.published_at is None:
        raise LifecycleError("superseded_by", f"{successor} is not published.")
    if chosen.pk == stored.pk:
        raise LifecycleError("superseded_by", f"{stored} cannot be its own successor.")
    link: ModelEntry | None = chosen
    while link is not None:
        if link.superseded_by_id == stored.pk:
            raise LifecycleError(
                "superseded_by",
                f"{chosen} is itself superseded, directly or indirectly, by {stored}.",
            )
        link = entries.get(link.superseded_by_id)
    return chosen


Header = tuple[bytes, bytes]


def deprecation_headers(model: PublishedModel) -> tuple[Header, ...]:
    """Return the headers of every answer of ``model``; none while it is active.

    ``Deprecation`` (RFC 9745) has the moment when it was superseded, ``Sunset`` (RFC 8594) that of
    its shutdown, ``Link`` with ``successor-version`` (RFC 5829) its successor in the catalog.
    """
    if model.superseded_by is None:
        return ()
    return _headers(model.superseded_by, model.superseded_epoch, model.shutdown_at)


@lru_cache(maxsize=256)
def _headers(
    successor: str, superseded_epoch: int, shutdown_at: datetime | None
) -> tuple[Header, ...]:
    link = f'</v1/models/{quote(successor, safe="")}>; rel="successor-version"'
    headers = [(b"deprecation", f"@{superseded_epoch}".encode()), (b"link", link.encode())]
    if shutdown_at is not None:
        moment = format_datetime(shutdown_at.astimezone(UTC), usegmt=True)
        headers.append((b"sunset", moment.encode()))
    return tuple(headers)
