"""The usage operations of the inference surface's OpenAPI document (docs/api/usage.md)."""

from __future__ import annotations

from typing import Final

from core import errors
from core.api.openapi import (
    INTEGER,
    STRING,
    ErrorSchema,
    Json,
    Schemas,
    answer,
    content,
    explain,
    failures,
    header,
    query,
)
from core.errors import ApiError
from usage.api.export_columns import EXPORT_COLUMNS, Column, Kind
from usage.api.export_views import DEFAULT_LIMIT, HIGHEST_LIMIT, Format
from usage.api.meanings import PAGE, ROW, SUMMARY
from usage.api.wire import UsageSummary
from usage.queries.periods import LONGEST, Bucket, GroupBy

_PERIOD_ERRORS: Final = (
    errors.InvalidCredential,
    errors.InternalError,
    errors.InvalidQuery,
    errors.PeriodInverted,
    errors.PeriodTooLong,
)
SUMMARY_ERRORS: Final[tuple[type[ApiError], ...]] = _PERIOD_ERRORS
EXPORT_ERRORS: Final[tuple[type[ApiError], ...]] = (
    *_PERIOD_ERRORS,
    errors.InvalidCursor,
    errors.CursorNotSupported,
    errors.RateLimitExceeded,
    errors.ServerOverloaded,
)

_PERIOD: Final = (
    query(
        "start",
        STRING,
        "ISO 8601 timestamp, or a date: the start of that UTC day. Default: the start of this "
        "UTC month.",
    ),
    query(
        "end",
        STRING,
        f"Exclusive, as `start`; at most {LONGEST.days} days after it. Default: the start of the "
        "next UTC month.",
    ),
    query("model", STRING, "Only this model identifier."),
    query("api_key_id", {"type": "string", "format": "uuid"}, "Only the key with this id."),
)
_KINDS: Final[dict[Kind, str]] = {Kind.INTEGER: "integer", Kind.BOOLEAN: "boolean"}


_WHEN_FREE: Final[Json] = {
    "retry-after": header("Whole seconds to wait.", always=False),
}
SENT: Final = (UsageSummary,)


def paths(
    schemas: Schemas, security: list[Json], schema_of: ErrorSchema, headers: dict[int, Json]
) -> Json:
    """The summary and the export; the surface that they are on describes the errors."""
    explain(schemas.components, SUMMARY)
    return {
        "/v1/usage": {
            "get": {
                "operationId": "getUsage",
                "summary": "Usage summary of a period",
                "security": security,
                "parameters": [*_PERIOD, *_summary_parameters()],
                "responses": {
                    "200": answer("The summary.", content(schemas.of[UsageSummary])),
                    **failures(SUMMARY_ERRORS, schema_of, headers),
                },
            }
        },
        "/v1/usage/export": {
            "get": {
                "operationId": "exportUsage",
                "summary": "Rows of a period",
                "security": security,
                "parameters": [*_PERIOD, *_export_parameters()],
                "responses": {
                    "200": _rows(),
                    **failures(EXPORT_ERRORS, schema_of, {**headers, 503: _WHEN_FREE}),
                },
            }
        },
    }


def _summary_parameters() -> list[Json]:
    groups = {"type": "array", "items": {"enum": [each.value for each in GroupBy]}}
    return [
        {
            **query("group_by", groups, "The breakdowns, separated by commas. Default: `model`."),
            "style": "form",
            "explode": False,
        },
        query(
            "bucket",
            {"enum": [each.value for each in Bucket], "default": Bucket.DAY.value},
            "Bucket of the breakdown by time.",
        ),
    ]


def _export_parameters() -> list[Json]:
    limit = {**INTEGER, "minimum": 1, "maximum": HIGHEST_LIMIT, "default": DEFAULT_LIMIT}
    return [
        query(
            "format",
            {"enum": [each.value for each in Format], "default": Format.JSON.value},
            "Pages of JSON, or the whole period as one CSV.",
        ),
        query("limit", limit, "Rows in a page. JSON only."),
        query("cursor", STRING, "A `next_cursor` of an earlier page. JSON only."),
    ]


def _rows() -> Json:
    row = {
        "type": "object",
        "required": [column.name for column in EXPORT_COLUMNS],
        "properties": {column.name: _cell(column) for column in EXPORT_COLUMNS},
        "additionalProperties": False,
    }
    page = {
        "type": "object",
        "required": ["columns", "rows", "next_cursor"],
        "properties": {
            "columns": {"const": [column.name for column in EXPORT_COLUMNS]},
            "rows": {"type": "array", "items": row},
            "next_cursor": {"type": ["string", "null"]},
        },
    }
    explain({"page": page}, {"page": PAGE})
    return answer(
        "The rows, by `occurred_at` and then `request_id`.",
        {
            **content(page),
            **content({"type": "string", "description": "As `columns`."}, "text/csv"),
        },
        {"content-disposition": header("A CSV's file name.", always=False)},
    )


def _cell(column: Column) -> Json:
    kind = _KINDS.get(column.kind, "string")
    return {
        "type": [kind, "null"] if "null" in column.shape else kind,
        "description": ROW[column.name],
    }
