"""GET /v1/models and GET /v1/models/{model} (inference contract, Endpoints)."""

from __future__ import annotations

import time
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import require
from accounts.models import Scope
from inference.catalog import catalog
from inference.entry import ModelList, served
from svc_project.lib.views import ApiView

CATALOG_SCOPES = frozenset({Scope.INFERENCE, Scope.READ})
"""Any key of this surface reads the catalog; docs/operate/catalog.md, Reading the catalog."""


class CatalogView(ApiView):
    """Read by a live inference or read key, or by a console session."""

    http_method_names: list[str] = ["get", "head"]  # noqa: RUF012  # as Django declares it

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = require(request, scopes=CATALOG_SCOPES, session=True)


class ModelListView(CatalogView):
    """Every published entry that is not retired, by identifier."""

    def get(self, request: Request) -> Response:
        now = time.time()
        models = catalog.current().models
        return Response(
            ModelList(
                object="list",
                data=[
                    served(models[identifier], now)
                    for identifier in sorted(models)
                    if not models[identifier].is_retired(now)
                ],
            )
        )


class ModelView(CatalogView):
    """One entry; a slash in its identifier arrives raw or as ``%2F``."""

    def get(self, request: Request, model: str) -> Response:
        now = time.time()
        catalog.current()
        return Response(served(catalog.resolve(model, now), now))
