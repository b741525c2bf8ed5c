"""GET /v1/usage (inference contract, Endpoints)."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.keys.authentication import require
from accounts.models import Scope
from core.api.views import ApiView
from usage.api.summary import summarize
from usage.queries.periods import parse_query
from usage.retention.pruned_months import require_sums

USAGE_SCOPES = frozenset({Scope.READ})


class UsageView(ApiView):
    """Base: read keys and console sessions may read their own organization only."""

    http_method_names: list[str] = ["get", "head"]  # noqa: RUF012  # as Django declares it

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = require(request, scopes=USAGE_SCOPES)


class UsageSummaryView(UsageView):
    """The aggregates of a period."""

    def get(self, request: Request) -> Response:
        query = parse_query(request.query_params.dict())
        require_sums(query.period)
        return Response(summarize(self.caller.organization_id, query))
