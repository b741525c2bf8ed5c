"""Shared by all tables of a catalog file (TOML): errors, and saving rows.

docs/operate/catalog.md, "The catalog file", describes every table and key. Each app reads and
loads its own tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import models


class CatalogFileError(Exception):
    """The file is invalid at ``where``, a table and key such as ``models[0].pricing``."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where
        self.message = message


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of a table's shape."""


def shape_error(text: str) -> CatalogFileError:
    """msgspec's message, with the table and key in front and advice for common mistakes."""
    problem, _, path = text.partition(" - at `$")
    where = path.rstrip("`").lstrip(".")
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", problem):
        return CatalogFileError(_joined(where, found[1]), "There is no such key here.")
    if found := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return CatalogFileError(_joined(where, found[1]), "This key is required.")
    if where.endswith("_per_mtok"):
        problem += ', a decimal in quotes such as "0.15"'
    if where.endswith(("_per_minute", "_per_day")) and "enum value" in problem:
        problem += ', only a number or "unlimited"'
    if "timezone" in problem:
        problem += ", such as 2027-01-31T00:00:00Z"
    return CatalogFileError(where, f"{problem}.".replace("`", ""))


def _joined(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def require_unique(names: list[str], table: str, key: str = "") -> None:
    """Raise ``CatalogFileError`` at the first repeated name, which ``key`` gives in tables."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            place = f"{table}[{index}].{key}" if key else f"{table}[{index}]"
            raise CatalogFileError(place, f"{name} is there twice.")
        seen.add(name)


def save(row: models.Model, where: str, keys: Mapping[str, str]) -> None:
    """Check and save ``row``, which the table at ``where`` describes.

    ``keys``: the table's keys, where they differ from the columns' names. Raises
    ``CatalogFileError`` that names the key.
    """
    try:
        row.full_clean()
    except ValidationError as error:
        column, messages = next(iter(error.message_dict.items()))
        key = {"__all__": "", **keys}.get(column, column)
        raise CatalogFileError(f"{where}.{key}" if key else where, messages[0]) from None
    row.save()


def update(
    row: models.Model, label: str, values: Mapping[str, Any], where: str, keys: Mapping[str, str]
) -> list[str]:
    """Set the ``values`` of ``row`` that differ; returns a line for each, led by ``label``."""
    differing = {
        name: (getattr(row, name), value)
        for name, value in values.items()
        if getattr(row, name) != value
    }
    for name, (_, value) in differing.items():
        setattr(row, name, value)
    if differing:
        save(row, where, keys)
    return [
        f"{label}: {keys.get(name, name)} {old} -> {value}"
        for name, (old, value) in differing.items()
    ]
