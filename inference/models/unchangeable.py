"""The refusal of a change to a published row, with a readable message.

The database refuses the same changes by triggers (migration 0002).
"""

from __future__ import annotations


class Unchangeable(Exception):
    """The change would break a promise to callers or the ledger."""
