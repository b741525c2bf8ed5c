"""The selection of rows: the organizations that have some, and one organization's by model and API key.

The summary, its chart, the refusals, the export and the console's list select with it, through the
ORM (``columns``) or in SQL (``conditions``); ``RowFilterSet`` reads it from a query string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import connection
from django_filters import CharFilter, FilterSet, UUIDFilter

from core.errors import InvalidQuery
from usage.models import UsageRollup, UsageRow

_FIELDS: Final = {field.name: field for field in UsageRow._meta.concrete_fields}


@dataclass(frozen=True, slots=True)
class Filters:
    """Restricts an organization's rows; None is no restriction. ``api_key_id`` is a UUID text."""

    model: str | None = None
    api_key_id: str | None = None


def columns(organization_id: str, filters: Filters) -> dict[str, str]:
    """The columns that the selected rows have in common, with their values."""
    chosen = {"organization_id": organization_id}
    if filters.model is not None:
        chosen["model_identifier"] = filters.model
    if filters.api_key_id is not None:
        chosen["api_key_id"] = filters.api_key_id
    return chosen


def conditions(organization_id: str, filters: Filters) -> dict[str, Any]:
    """SQL conditions of ``columns``, each with the parameter of its placeholder."""
    return {
        f"{name} = %s": _FIELDS[name].get_db_prep_value(value, connection)
        for name, value in columns(organization_id, filters).items()
    }


def _require_printable(model: str) -> None:
    if not model.isprintable():
        raise ValidationError("'model' must be a model identifier.")


class RowFilterSet(FilterSet):  # type: ignore[misc]  # django-filter has no types
    """``model`` and ``api_key_id`` of a query string, for any table with ``columns``.

    Inference contract, "GET /v1/usage": the last of a repeated parameter counts, an empty one is
    absent.
    """

    model = CharFilter(field_name="model_identifier", strip=False, validators=[_require_printable])
    api_key_id = UUIDFilter(
        field_name="api_key_id",
        strip=False,
        error_messages={
            "invalid": "'api_key_id' must be a UUID: the key's id, not its prefix.",
        },
    )

    class Meta:
        model = UsageRow
        fields = ()


def parse_filters(parameters: Mapping[str, str]) -> Filters:
    """Parse ``model`` and ``api_key_id``. Raises ``InvalidQuery`` for the first that is wrong."""
    form = RowFilterSet(parameters).form
    if not form.is_valid():
        name, messages = next(iter(form.errors.items()))
        raise InvalidQuery(messages[0], param=name)
    model, key = form.cleaned_data["model"], form.cleaned_data["api_key_id"]
    return Filters(model or None, str(key) if key else None)


_HOURS: Final = UsageRollup._meta.db_table


def owners_of(table: str) -> str:
    """SQL of the table ``owner``, the organizations in ``table``, whose last ``id`` is null.

    It steps through an index that begins with the organization, because DISTINCT would read all of it.
    """
    return f"""
WITH RECURSIVE owner(id) AS (
    SELECT * FROM (SELECT organization_id FROM {table} ORDER BY organization_id LIMIT 1) AS first
    UNION ALL
    SELECT (SELECT organization_id FROM {table} WHERE organization_id > owner.id
            ORDER BY organization_id LIMIT 1)
    FROM owner WHERE owner.id IS NOT NULL
)
"""  # noqa: S608  # names are ours


OWNERS: Final = owners_of(_HOURS)
"""The organizations that have roll-ups."""


def owners(most: int) -> list[Any] | None:
    """Return the organizations' ids for a query, or None when there are more than ``most``."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{OWNERS} SELECT id FROM owner WHERE id IS NOT NULL LIMIT %s",  # noqa: S608
            [most + 1],
        )
        found = [each for (each,) in cursor.fetchall()]
    return found if len(found) <= most else None
