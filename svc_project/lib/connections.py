"""Database connections of threads that we run ourselves.

Django's request threads open a connection for a request and close it with it: under ASGI each
request has a thread of its own, so a connection that outlived it would only be left lying about.
A thread of ours lives as long as the process and keeps its connection.
"""

from __future__ import annotations

from django.db import connections


def keep_usable() -> None:
    """Keep this thread's connections from one use to the next; close those that broke."""
    for connection in connections.all(initialized_only=True):
        connection.close_at = None
        connection.close_if_unusable_or_obsolete()
