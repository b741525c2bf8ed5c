"""Database connections of threads that we run ourselves.

Django's request threads (svc_project.crowds) open a connection for a request and close it with it,
so that many idle workers hold few connections. A thread of ours lives as long as the process and keeps its connection.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def keep_usable() -> None:
    """Keep this thread's connections from one use to the next; close those that broke."""
    for connection in connections.all(initialized_only=True):
        connection.close_at = None
        connection.close_if_unusable_or_obsolete()


def cut(connection: BaseDatabaseWrapper) -> None:
    """End the wait of another thread on ``connection``: its statement fails at once.

    For a PostgreSQL that took a statement and will never answer. A file has no such wait, so on
    SQLite nothing happens.
    """
    if connection.vendor != "postgresql" or connection.connection is None:
        return
    # The other thread owns the connection and closes it; only the socket under it is shut down.
    with suppress(OSError, psycopg.Error):  # it was closed just now
        descriptor = os.dup(connection.connection.fileno())
        with socket.socket(fileno=descriptor) as link:
            link.shutdown(socket.SHUT_RDWR)
