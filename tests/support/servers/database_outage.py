"""Ways in which a gateway's database stops working, for each kind of database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from django.db import connection, connections
from django.db.models import Model

from usage.models import SpeechRow, UsageRow


def another_session(*, autocommit: bool = False) -> psycopg.Connection:
    """A connection of its own to the PostgreSQL database of Django's connection."""
    place: dict[str, Any] = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    own: Any = {name: place.get(name) for name in names}
    return psycopg.connect(autocommit=autocommit, **own)


@contextmanager
def tables_locked(*names: str) -> Iterator[None]:
    """Block writes of these tables meanwhile; reads go on. SQLite has one lock for everything."""
    other: Any
    if connection.vendor == "sqlite":
        other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
        statement = "BEGIN EXCLUSIVE"
    else:
        other = another_session()
        tables = ", ".join(f'"{name}"' for name in names)
        statement = f"LOCK TABLE {tables} IN EXCLUSIVE MODE"
    try:
        other.execute(statement)
        yield
        other.rollback()
    finally:
        other.close()


def rows_locked(*others: type[Model]) -> AbstractContextManager[None]:
    """Block writes of ledger rows meanwhile, and of ``others``."""
    models: tuple[type[Model], ...] = (UsageRow, SpeechRow, *others)
    return tables_locked(*(model._meta.db_table for model in models))


@contextmanager
def database_outage() -> Iterator[None]:
    """Point every new connection at an address without a database: connecting really fails.

    The test closes connections that are open already.
    """
    config = connections.settings["default"]
    kept = {name: config[name] for name in ("NAME", "HOST", "PORT")}
    if connection.vendor == "sqlite":
        config["NAME"] = "/nonexistent/directory/svc.sqlite3"
    else:
        config.update(HOST="127.0.0.1", PORT="1")
    try:
        yield
    finally:
        config.update(kept)
