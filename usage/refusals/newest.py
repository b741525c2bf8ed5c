"""The newest refused requests of each organization: those that wait in memory, and those in the table.

However many requests are refused, an organization has ``KEPT_NEWEST`` of them, in each process that waits
to write them and in the table, so none displaces another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from django.db.models import Count

from accounts.keys.refusals import Refusal as Refused
from accounts.models import ApiKey
from usage.models import Refusal

KEPT_NEWEST: Final = 200
MOST_WAITING: Final = 5_000
"""Of all organizations, in one process; about a kilobyte each."""
MOST_UNKNOWN: Final = 500
"""Likewise, of all keys whose organization is not known yet: anyone can invent such keys."""

_COLUMNS: Final = ("route", "status", "error", "param", "message")
_BATCH: Final = 500


class Waiting:
    """Refusals that wait to be written. Beyond its bounds the oldest of the owner that has most is dropped.

    For one thread at a time.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.dropped = 0
        self._most = most
        self._held = 0
        self._of: dict[str, deque[Refused]] = {}

    def add(self, refused: Refused) -> None:
        """Append the newest refusal of its organization, or of its key where that is not known yet."""
        owner = refused.organization_id or refused.digests[0]
        own = self._of.setdefault(owner, deque())
        own.append(refused)
        self._held += 1
        if len(own) > KEPT_NEWEST:
            self._drop(owner)
        elif self._held > self._most:
            self._drop(max(self._of, key=lambda each: len(self._of[each])))

    def take(self) -> list[Refused]:
        """Remove and return all, those of an organization in their order."""
        taken = [each for own in self._of.values() for each in own]
        self._of, self._held = {}, 0
        return taken

    def _drop(self, owner: str) -> None:
        own = self._of[owner]
        own.popleft()
        if not own:
            del self._of[owner]
        self._held -= 1
        self.dropped += 1


def with_owners(waited: Iterable[Refused]) -> list[Refused]:
    """Those of ``waited`` that have an owner: of a key that no longer works, it is looked up here.

    Raises ``django.db.Error``.
    """
    known = [each for each in waited if each.organization_id]
    unknown = [each for each in waited if not each.organization_id]
    digests = {digest for each in unknown for digest in each.digests}
    if not digests:
        return known
    keys = {
        digest: (str(organization_id), str(api_key_id))
        for digest, organization_id, api_key_id in ApiKey.objects.filter(
            digest__in=digests
        ).values_list("digest", "organization_id", "pk")
    }
    for each in unknown:
        owner = next((keys[digest] for digest in each.digests if digest in keys), None)
        if owner is not None:
            known.append(replace(each, organization_id=owner[0], api_key_id=owner[1]))
    return known


def insert(refused: Sequence[Refused]) -> None:
    """Insert refusals, those that are there already too. Raises ``django.db.Error``."""
    Refusal.objects.bulk_create(
        [
            Refusal(
                request_id=each.request_id,
                occurred_at=each.occurred_at,
                organization_id=each.organization_id,
                api_key_id=each.api_key_id,
                model_identifier=each.model,
                **{name: getattr(each, name) for name in _COLUMNS},
            )
            for each in refused
        ],
        batch_size=_BATCH,
        ignore_conflicts=True,
    )


def trim(organization_ids: Iterable[str]) -> None:
    """Delete all but the newest ``KEPT_NEWEST`` of each organization. Raises ``django.db.Error``."""
    rich = (
        Refusal.objects.filter(organization_id__in=set(organization_ids))
        .order_by()
        .values_list("organization_id")
        .annotate(held=Count("*"))
        .filter(held__gt=KEPT_NEWEST)
    )
    for organization_id, _ in list(rich):
        own = Refusal.objects.filter(organization_id=organization_id)
        newest = own.order_by("-occurred_at", "-request_id").values_list(
            "occurred_at", "request_id"
        )
        # A list of exactly these: another process may delete some of them at the same time.
        old = list(newest[KEPT_NEWEST:].values_list("request_id", flat=True))
        for at in range(0, len(old), _BATCH):
            own.filter(request_id__in=sorted(old[at : at + _BATCH])).delete()
