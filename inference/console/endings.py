"""Models that end, and the organization's keys that still call them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from accounts.models import Organization
from inference.catalog.snapshot import PublishedModel
from usage.console.key_names import KeyName, names_of
from usage.queries.overviews.callers import callers

CALLED_DAYS: Final = 7
"""Calls of so many days count."""


@dataclass(frozen=True, slots=True)
class KeyInUse:
    """A key that still calls the model; ``last_hour`` is the hour of its latest request."""

    key: KeyName
    requests: int
    last_hour: datetime


@dataclass(frozen=True, slots=True)
class Ending:
    """A superseded model; ``days_left`` is None while it has no shutdown date."""

    model: PublishedModel
    days_left: int | None
    keys: tuple[KeyInUse, ...]

    @property
    def requests(self) -> int:
        return sum(each.requests for each in self.keys)


def endings(
    organization: Organization, models: Mapping[str, PublishedModel], now: datetime
) -> list[Ending]:
    """Return the superseded models that still serve, the first to end first, with their callers.

    Raises ``django.db.Error``.
    """
    ending = sorted(
        (
            model
            for model in models.values()
            if model.superseded_by is not None and not model.is_retired(now.timestamp())
        ),
        key=lambda model: (model.shutdown_epoch, model.id),
    )
    found = callers(
        str(organization.pk), [model.id for model in ending], now - timedelta(days=CALLED_DAYS)
    )
    names = names_of(organization, {each.api_key_id for each in found}) if found else {}
    by_model: defaultdict[str, list[KeyInUse]] = defaultdict(list)
    for each in found:
        by_model[each.model_identifier].append(
            KeyInUse(names[each.api_key_id], each.requests, each.last_hour)
        )
    return [
        Ending(
            model,
            None if model.shutdown_at is None else max(0, (model.shutdown_at - now).days),
            tuple(by_model[model.id]),
        )
        for model in ending
    ]
