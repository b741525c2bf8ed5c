"""GET /v1/models and GET /v1/models/{model} (inference contract, Endpoints)."""

from __future__ import annotations

import time
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.keys.authentication import require
from accounts.models import Scope
from core.api.views import ApiView
from inference.catalog.catalog import catalog
from inference.catalog.model_object import ModelList, served

CATALOG_SCOPES = frozenset({Scope.INFERENCE, Scope.READ})
"""Any key of this surface may read the catalog; docs/operate/catalog.md, Reading the catalog."""


class CatalogView(ApiView):
    """Requires a valid key with the inference or read scope, or a console session."""

    http_method_names: list[str] = ["get", "head"]  # noqa: RUF012  # as Django declares it

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = require(request, scopes=CATALOG_SCOPES, session=True)


class ModelListView(CatalogView):
    """Lists every published entry that is not retired, by identifier."""

    def get(self, request: Request) -> Response:
        now = time.time()
        models = catalog.current().models
        priced = catalog.pricing_time(now)
        return Response(
            ModelList(
                object="list",
                data=[
                    served(models[identifier], priced)
                    for identifier in sorted(models)
                    if not models[identifier].is_retired(now)
                ],
            )
        )


class ModelView(CatalogView):
    """Shows one entry; a slash in its identifier may be raw or ``%2F``."""

    def get(self, request: Request, model: str) -> Response:
        now = time.time()
        catalog.current()
        return Response(served(catalog.resolve(model, now), catalog.pricing_time(now)))
