"""The database of the settings, from its address."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

import environ
from django.core.exceptions import ImproperlyConfigured

_OLDEST_SECONDS = 600
"""The age at which a connection of a thread that runs views is replaced."""
_FORM: Final = (
    "the form postgres://USER:PASSWORD@HOST:PORT/NAME, with a port from 1 to 65535. Write # / ? @ in a "
    "password as %23 %2F %3F %40."
)


def described(url: str, test_file: Path) -> dict[str, Any]:
    """Return Django's description of the database at ``url``, with the options that the ledger relies on.

    ``test_file``: where tests keep a SQLite database. Raises ``ImproperlyConfigured``.
    """
    config = _parsed(url)
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
            # For commands; the parent of the workers gives each process a name of its own.
            "fallback_application_name": f"svc-{socket.gethostname()[:40]}",
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


def _parsed(url: str) -> dict[str, Any]:
    """The parts of ``url``, complete. Raises ``ImproperlyConfigured``."""
    try:
        config: dict[str, Any] = environ.Env.db_url_config(url)
    except ValueError:
        raise ImproperlyConfigured(f"DATABASE_URL must have {_FORM}") from None
    if config["ENGINE"].endswith("sqlite3"):
        _check_file(config["NAME"])
    elif not (config["NAME"] or config.get("OPTIONS", {}).get("service")):
        raise ImproperlyConfigured(
            f"DATABASE_URL is without the name of a database. It must have {_FORM}"
        )
    return config


def _check_file(name: str) -> None:
    """Refuse a file of SQLite that cannot be made where it shall be. Raises ``ImproperlyConfigured``."""
    path = Path(name).absolute()
    if path.is_dir():
        raise ImproperlyConfigured(f"DATABASE_URL: {path} is a directory. Name a file in it.")
    if not path.parent.is_dir():
        raise ImproperlyConfigured(
            f"DATABASE_URL: {path.parent} is no directory. Make it, or name a file elsewhere; an "
            "absolute path follows four slashes: sqlite:////PATH."
        )
