"""Announces new rows to the console's watchers (``usage.console.live``), once they are committed.

The ledger's writer calls this after each batch. While no organization is watched that costs one
comparison a batch, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

from usage.receipts import AnyReceipt, SpeechReceipt


class Ended(NamedTuple):
    """Requests of one kind ended in an organization (a UUID text)."""

    organization_id: str
    is_speech: bool


Listener = Callable[[frozenset[Ended]], None]
"""Called in the thread that wrote the rows; must return at once."""


class Announcements:
    """The watched organizations, and the listener for their rows.

    ``organizations`` is replaced as a whole, so the writer's thread reads it without a lock.
    """

    def __init__(self) -> None:
        self.organizations: frozenset[str] = frozenset()
        self._listener: Listener | None = None

    def listen(self, listener: Listener | None) -> None:
        """Replace the listener; without one nothing is announced."""
        self._listener = listener
        if listener is None:
            self.organizations = frozenset()

    def announce(self, receipts: Sequence[AnyReceipt]) -> None:
        """Announce the rows of ``receipts`` after the current transaction, if they are watched."""
        ended = frozenset(
            Ended(each.organization_id, isinstance(each, SpeechReceipt))
            for each in receipts
            if each.organization_id in self.organizations
        )
        if ended and self._listener is not None:
            # The rows are durable: a failing listener must not make the writer repeat them.
            transaction.on_commit(partial(self._listener, ended), robust=True)


announcements = Announcements()
"""The announcements of this process."""
