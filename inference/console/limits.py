"""The limits of an organization, and how near its busiest minute came to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Q

from accounts.models import ApiKey, Organization
from inference.catalog.snapshot import PublishedModel
from usage.console.key_names import key_name
from usage.queries.overviews.health import BusiestMinute, Sample

_NEARLY = 0.8
_MOST_KEYS = 20


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit per minute; ``most`` is what the busiest minute used of it."""

    owner: str
    unit: str
    limit: int
    most: int

    @property
    def nearly(self) -> int:
        """From where the meter shows a warning."""
        return int(self.limit * _NEARLY)


def limit_lines(
    organization: Organization, models: Mapping[str, PublishedModel], sample: Sample
) -> list[LimitLine]:
    """Return every limit that applies to chat requests of the organization.

    Raises ``django.db.Error``.
    """
    lines = list(
        _lines(
            "All requests",
            organization.requests_per_minute,
            organization.tokens_per_minute,
            sample.busiest_minute(),
        )
    )
    limited = ApiKey.objects.filter(
        Q(requests_per_minute__isnull=False) | Q(tokens_per_minute__isnull=False),
        organization=organization,
        revoked_at=None,
    )
    for key in limited[:_MOST_KEYS]:
        name = key_name(str(key.pk), key.label, key.prefix).text
        lines += key_limit_lines(key, f"Key {name}", sample)
    for model in models.values():
        limits = model.limits.get(str(organization.pk))
        if limits is not None:
            busiest = sample.busiest_minute(model=model.id)
            lines += _lines(model.id, limits.requests_per_minute, limits.tokens_per_minute, busiest)
    return lines


def key_limit_lines(key: ApiKey, owner: str, sample: Sample) -> list[LimitLine]:
    """Return the limits of ``key`` itself, under the name ``owner``."""
    busiest = sample.busiest_minute(api_key_id=key.pk)
    return list(_lines(owner, key.requests_per_minute, key.tokens_per_minute, busiest))


def _lines(
    owner: str, requests: int | None, tokens: int | None, busiest: BusiestMinute
) -> Iterator[LimitLine]:
    if requests is not None:
        yield LimitLine(owner, "requests a minute", requests, busiest.requests)
    if tokens is not None:
        yield LimitLine(owner, "tokens a minute", tokens, busiest.tokens)
