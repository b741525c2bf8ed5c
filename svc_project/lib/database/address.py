"""The database of the settings, from its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

_OLDEST_SECONDS = 600
"""The age at which a connection of a thread that runs views is replaced."""


def described(url: str, test_file: Path) -> dict[str, Any]:
    """Return Django's description of the database at ``url``, with the options that the ledger relies on.

    ``test_file``: where tests keep a SQLite database. Raises ``ImproperlyConfigured``.
    """
    config: dict[str, Any] = environ.Env.db_url_config(url)
    # Threads that run views keep a connection (svc_project.gate.view_threads), and test it once a
    # request, because a restarted database has closed it.
    config["CONN_MAX_AGE"] = _OLDEST_SECONDS
    config["CONN_HEALTH_CHECKS"] = True
    engine = config["ENGINE"]
    if engine.endswith("sqlite3"):
        # WAL lets readers pass the ledger's writer; FULL makes a commit survive a power cut;
        # IMMEDIATE takes the write lock at BEGIN, where waiting for it is possible.
        config["OPTIONS"] = {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        }
        config["TEST"] = {"NAME": str(test_file)}
    elif engine.endswith("postgresql"):
        # A peer that vanished without a word is noticed within half a minute, not after hours.
        config["OPTIONS"] = {
            "connect_timeout": 5,
            "tcp_user_timeout": 20_000,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **config.get("OPTIONS", {}),
        }
    else:
        raise ImproperlyConfigured("DATABASE_URL must be a postgres:// or a sqlite:/// address.")
    return config
