"""The database's schema beside the code's: which migrations one has and the other has not."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.migrations.loader import MigrationLoader


@dataclass(frozen=True, slots=True)
class Comparison:
    """Names of migrations, as ``usage.0008_admissions``, sorted."""

    missing: list[str]
    """Those of the code that the database has not: its schema is older."""
    unknown: list[str]
    """Those of the database that the code has not, among the code's apps: its schema is newer."""


def compare() -> Comparison:
    """Compare them. Raises ``django.db.Error``."""
    loader = MigrationLoader(connection)
    ours, theirs = set(loader.disk_migrations or ()), set(loader.applied_migrations or ())
    return Comparison(
        _names(ours - theirs),
        _names({each for each in theirs - ours if each[0] in loader.migrated_apps}),
    )


def _names(migrations: set[tuple[str, str]]) -> list[str]:
    return sorted(f"{app}.{name}" for app, name in migrations)
