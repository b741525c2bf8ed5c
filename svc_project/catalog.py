"""A catalog file, whole: each app loads its own tables, in one transaction."""

from __future__ import annotations

from django.db import transaction

from inference.catalog_file import read_catalog_file
from inference.catalog_load import load_catalog
from speech.catalog_file import read_speech_tables
from speech.catalog_load import load_voices


def load_catalog_file(content: bytes) -> list[str]:
    """Bring the database to what ``content`` (TOML) says; tells each change in words.

    Raises ``CatalogFileError`` that names the table and key; nothing is changed then.
    """
    file = read_catalog_file(content)
    speech = read_speech_tables(file.voices, file.speech_backends)
    with transaction.atomic():
        return load_catalog(file) + load_voices(speech)
