"""The catalog in the OpenAPI document of the management API."""

from __future__ import annotations

from typing import Final

import msgspec

from accounts.api.openapi import Operations, object_of
from core import errors
from core.api.openapi import STRING, ErrorSchema, Json, Schemas, body, explain, query
from core.catalog_tables import Table
from inference.catalog.file import BackendTable, ModelTable
from speech.voices.load import SpeechBackendTable, VoiceTable
from svc_project.configuration.meanings import MEANINGS
from svc_project.configuration.views import CatalogChanges, PriceFacts


class CatalogDocument(Table, frozen=True):
    """The whole document, as ``CatalogView`` shows and takes it."""

    backends: list[BackendTable] = msgspec.field(default_factory=list)
    models: list[ModelTable] = msgspec.field(default_factory=list)
    voices: list[VoiceTable] = msgspec.field(default_factory=list)
    speech_backends: list[SpeechBackendTable] = msgspec.field(default_factory=list)


READ: Final = (CatalogDocument,)
SENT: Final = (CatalogChanges, PriceFacts)


def paths(schemas: Schemas, error_schema: ErrorSchema) -> Json:
    """Every path of ``svc_project.configuration.urls``."""
    explain(schemas.components, MEANINGS)
    make = Operations(error_schema)
    return {
        "/manage/v1/catalog": _catalog(make, schemas),
        "/manage/v1/prices": {"get": _prices(make, schemas.of[PriceFacts])},
    }


def _catalog(make: Operations, schemas: Schemas) -> Json:
    document = schemas.of[CatalogDocument]
    dry_run = query(
        "dry_run",
        {"enum": ["true", "false"]},
        "`true`: say what would change, and change nothing.",
    )
    return {
        "get": make.operation(
            "getCatalog",
            "The whole catalog: models, prices, backends and voices",
            {200: ("The document that `PUT` takes, without secrets.", document)},
            errors.InvalidQuery,
        ),
        "put": make.operation(
            "putCatalog",
            "Add and change what a document names",
            {200: ("A line for each change.", schemas.of[CatalogChanges])},
            errors.InvalidQuery,
            errors.InvalidField,
            errors.RequestTooLarge,
            description="In one transaction. What is not named stays; of what is named, members "
            "that are left out get their defaults. Prices are appended, never edited.",
            parameters=[dry_run],
            requestBody=body(document, required=False),
        ),
    }


def _prices(make: Operations, price: Json) -> Json:
    model = query("model", STRING, "The model's identifier.")
    return make.operation(
        "listPrices",
        "The prices that a model had, has and will have",
        {200: ("By the moment from which each is in force.", object_of(data=_array(price)))},
        errors.InvalidQuery,
        parameters=[{**model, "required": True, "allowEmptyValue": False}],
    )


def _array(items: Json) -> Json:
    return {"type": "array", "items": items, "description": "All of them, in their order."}
