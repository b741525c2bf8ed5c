"""Every table whose changes workers are told of has its triggers after all migrations.

On SQLite a migration that adds a column may make the table anew, without them.
"""

from __future__ import annotations

import pytest
from django.db import connection

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]

WATCHED = {
    *("accounts_apikey", "accounts_organization"),
    *("inference_weightsrecord", "inference_modelentry", "inference_price", "inference_backend"),
    *("inference_deployment", "inference_modellimit"),
    *("speech_voice", "speech_speechbackend"),
}


def test_changes_of_every_watched_table_are_announced() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT DISTINCT event_object_table FROM information_schema.triggers")
        else:
            cursor.execute("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger'")
        found = {table for (table,) in cursor.fetchall()}
    assert found >= WATCHED
