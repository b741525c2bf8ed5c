"""The release before works on the schema of this one: rows without the newest columns have their defaults."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from django.db import connection, models, transaction

from inference.models import Backend, Deployment, ModelEntry
from tests.support.builders import catalog_rows

pytestmark = pytest.mark.django_db

NEW: dict[type[models.Model], dict[str, Any]] = {
    Backend: {"prefix_cache": "shared"},
    Deployment: {"weight": 100, "draining": False},
    ModelEntry: {"extra_fields": {}, "defaults": {}, "keep_alive_seconds": None},
}
"""The columns that it does not know, with what they are where it writes a row."""


@pytest.mark.parametrize("table", NEW, ids=lambda table: table.__name__)
def test_a_row_of_the_release_before_has_the_defaults(table: type[models.Model]) -> None:
    catalog_rows.deployed(catalog_rows.draft())
    before = table._default_manager.values().get()

    assert rewritten_without(table, NEW[table]) == before | NEW[table]


def rewritten_without(table: type[models.Model], columns: Collection[str]) -> dict[str, Any]:
    """The only row of ``table``, once a release that does not know ``columns`` has written it."""
    known = [each for each in table._meta.concrete_fields if each.name not in columns]
    quoted = ", ".join(connection.ops.quote_name(str(each.column)) for each in known)
    name = connection.ops.quote_name(table._meta.db_table)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE old AS SELECT {quoted} FROM {name}")
        Deployment.objects.all().delete()
        table._default_manager.all().delete()
        cursor.execute(f"INSERT INTO {name} ({quoted}) SELECT {quoted} FROM old")
        cursor.execute("DROP TABLE old")
    return table._default_manager.values().get()
