"""Response headers that tell a client that its model was superseded.

``Deprecation`` (RFC 9745) has the moment when it was superseded, ``Sunset`` (RFC 8594) that of its
shutdown, ``Link`` with ``successor-version`` (RFC 5829) its successor in the catalog.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from urllib.parse import quote

from inference.catalog.snapshot import PublishedModel

Header = tuple[bytes, bytes]


def deprecation_headers(model: PublishedModel) -> tuple[Header, ...]:
    """Return the headers of every answer of ``model``; none while it is active."""
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
