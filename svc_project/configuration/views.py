"""/manage/v1/catalog: models, prices, backends and voices as one document; and the prices of a model."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.management import ManagementView, require_parameters
from core.catalog_tables import CatalogFileError
from core.clock import iso_milliseconds
from core.errors import InvalidField, InvalidQuery
from core.money import price_text
from inference.models import ModelEntry, Price
from svc_project.configuration.documents import load_catalog_values, stored_catalog

_FLAGS: Final = {"true": True, "false": False}


class CatalogChanges(msgspec.Struct):
    """What a PUT changed or, in a dry run, would change: a line each, in order."""

    dry_run: bool
    changes: list[str]


class PriceFacts(msgspec.Struct):
    """A price of a model, in force from its moment until the next one's."""

    model: str
    input_per_mtok: str
    output_per_mtok: str
    currency: str
    effective_from: str


class CatalogView(ManagementView):
    parameters_of_changes: ClassVar[tuple[str, ...]] = ("dry_run",)

    def get(self, request: Request) -> Response:
        """The whole catalog, in the form that ``put`` takes."""
        require_parameters(request)
        return Response(stored_catalog())

    def put(self, request: Request) -> Response:
        """Add and change what the document names. What it leaves out stays as it is."""
        dry_run = _FLAGS.get(request.query_params.get("dry_run", "false"))
        if dry_run is None:
            raise InvalidQuery("'dry_run' must be 'true' or 'false'.", param="dry_run")
        try:
            changes = load_catalog_values(request.data, only_plan=dry_run)
        except CatalogFileError as error:
            raise InvalidField(
                f"'{error.where}': {error.message}" if error.where else error.message,
                param=error.where or None,
            ) from None
        return Response(CatalogChanges(dry_run=dry_run, changes=changes))


class PricesView(ManagementView):
    def get(self, request: Request) -> Response:
        """Every price that a model had, has and will have, in this order; withdrawn ones are left out."""
        require_parameters(request, "model")
        named = request.query_params.get("model", "")
        # PostgreSQL cannot compare with a null character.
        entry = None if "\0" in named else ModelEntry.objects.filter(identifier=named).first()
        if entry is None:
            raise InvalidQuery("'model' must name a model of the catalog.", param="model")
        rows = Price.objects.standing().filter(entry=entry).order_by("effective_from")
        return Response({"data": [_price_facts(entry, row) for row in rows]})


def _price_facts(entry: ModelEntry, row: Price) -> PriceFacts:
    return PriceFacts(
        model=entry.identifier,
        input_per_mtok=price_text(row.input_per_mtok),
        output_per_mtok=price_text(row.output_per_mtok),
        currency=row.currency,
        effective_from=iso_milliseconds(row.effective_from),
    )
