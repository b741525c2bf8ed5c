"""The database's schema beside the code's: which migrations one has and the other has not."""

from __future__ import annotations

import pkgutil
from collections.abc import Set
from dataclasses import dataclass
from importlib.util import find_spec

from django.apps import AppConfig, apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


@dataclass(frozen=True, slots=True)
class Comparison:
    """Names of migrations, as ``usage.0008_admissions``, sorted."""

    missing: list[str]
    """Those of the code that the database has not: its schema is older."""
    unknown: list[str]
    """Those of the database that the code has not, among the code's apps: its schema is newer."""


def compare() -> Comparison:
    """Compare them by name, as files and in the table of migrations. Raises ``django.db.Error``.

    Django's loader would import every migration, which takes 35 ms of each worker's start, to learn
    what squashed ones replace: ``migrate`` records a squashed one under its own name too.
    """
    ours = {app.label: _files(app) for app in apps.get_app_configs()}
    applied = MigrationRecorder(connection).applied_migrations()
    on_disk = {(label, name) for label, names in ours.items() for name in names}
    return Comparison(
        _names(on_disk - applied.keys()),
        _names({each for each in applied.keys() - on_disk if ours.get(each[0])}),
    )


def _files(app: AppConfig) -> list[str]:
    """The names of an app's migrations."""
    package, _ = MigrationLoader.migrations_module(app.label)
    if package is None or (spec := find_spec(package)) is None:
        return []
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return [each.name for each in modules if not each.ispkg and each.name[0] not in "_~"]


def _names(migrations: Set[tuple[str, str]]) -> list[str]:
    return sorted(f"{app}.{name}" for app, name in migrations)
