"""Applies documents of the whole installation: each app applies its own tables, in one transaction.

A catalog has models, backends, prices and voices. A configuration file has organizations and users
besides. docs/operate/catalog.md and docs/operate/automation.md describe the tables.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.db import transaction

from accounts.load import load_accounts, read_account_tables
from inference.catalog.file import CatalogFile, read_catalog_file, read_catalog_values
from inference.catalog.load import load_catalog
from inference.catalog.stored import stored_backends, stored_models
from speech.voices.load import load_voices, read_speech_tables
from speech.voices.stored import stored_speech_tables


class ConfigurationFile(CatalogFile, frozen=True):
    """A whole file of ``svc plan`` and ``svc apply``. ``accounts.load`` parses the tables of its own."""

    organizations: list[dict[str, Any]] = msgspec.field(default_factory=list)
    users: list[dict[str, Any]] = msgspec.field(default_factory=list)


def load_catalog_file(content: bytes) -> list[str]:
    """Update the catalog to match ``content`` (TOML); returns a line for each change.

    Raises ``CatalogFileError`` that names the table and key; nothing is changed then.
    """
    return _apply(read_catalog_file(content, CatalogFile), only_plan=False)


def load_catalog_values(found: object, *, only_plan: bool) -> list[str]:
    """Update the catalog to match ``found``, the same document in JSON values.

    With ``only_plan`` nothing is changed, and the lines say what would be. Raises as
    ``load_catalog_file``.
    """
    return _apply(read_catalog_values(found), only_plan=only_plan)


def apply_configuration(content: bytes, *, only_plan: bool) -> list[str]:
    """Update organizations, users and catalog to match ``content`` (TOML).

    ``only_plan`` and errors are as in ``load_catalog_values``.
    """
    return _apply(read_catalog_file(content, ConfigurationFile), only_plan=only_plan)


def stored_catalog() -> dict[str, Any]:
    """The catalog in the database as JSON values; loading them changes nothing. It has no secret."""
    speech = stored_speech_tables()
    values: dict[str, Any] = msgspec.to_builtins(
        {
            "backends": stored_backends(),
            "models": stored_models(),
            "voices": speech.voices,
            "speech_backends": speech.speech_backends,
        }
    )
    return values


def _apply(file: CatalogFile, *, only_plan: bool) -> list[str]:
    """Apply ``file``. A plan is a load that is rolled back, so that both find the same."""
    speech = read_speech_tables(file.voices, file.speech_backends)
    changes: list[str] = []
    with transaction.atomic():
        if isinstance(file, ConfigurationFile):
            changes += load_accounts(read_account_tables(file.organizations, file.users))
        changes += load_catalog(file)
        changes += load_voices(speech)
        if only_plan:
            transaction.set_rollback(True)
    return changes
