"""Loads a whole catalog file: each app loads its own tables, in one transaction."""

from __future__ import annotations

from django.db import transaction

from inference.catalog.file import read_catalog_file
from inference.catalog.load import load_catalog
from speech.voices.load import load_voices, read_speech_tables


def load_catalog_file(content: bytes) -> list[str]:
    """Update the database to match ``content`` (TOML); returns a line for each change.

    Raises ``CatalogFileError`` that names the table and key; nothing is changed then.
    """
    file = read_catalog_file(content)
    speech = read_speech_tables(file.voices, file.speech_backends)
    with transaction.atomic():
        return load_catalog(file) + load_voices(speech)
