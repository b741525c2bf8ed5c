"""Database connections of background threads.

Django's request threads (``svc_project.gate.view_threads``) keep a connection while requests come,
so that many idle workers hold few. A background thread lives as long as the process and keeps its
connection.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def keep_usable() -> None:
    """Keep this thread's connections open between uses; close those that an error broke.

    They are not tested with a statement (``CONN_HEALTH_CHECKS``), which every use would wait for.
    """
    for connection in connections.all(initialized_only=True):
        connection.close_at = None
        connection.close_if_unusable_or_obsolete()
        connection.health_check_done = True  # type: ignore[attr-defined]  # the stubs lack it


def abort_connection(connection: BaseDatabaseWrapper) -> None:
    """Make another thread's statement on ``connection`` fail at once.

    For a PostgreSQL that accepted a statement and will never answer. SQLite never waits for a
    server, so there it does nothing.
    """
    if connection.vendor != "postgresql" or connection.connection is None:
        return
    # The other thread owns and closes the connection; only its socket is shut down here.
    with suppress(OSError, psycopg.Error):  # it was closed just now
        descriptor = os.dup(connection.connection.fileno())
        with socket.socket(fileno=descriptor) as link:
            link.shutdown(socket.SHUT_RDWR)
