"""GET /v1/usage (inference contract, Endpoints)."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import require
from accounts.models import Scope
from svc_project.lib.views import ApiView
from usage.periods import parse_query
from usage.retention import require_sums
from usage.summary import summarize

USAGE_SCOPES = frozenset({Scope.READ})


class UsageView(ApiView):
    """Read by a read key or by a console session, about their own organization only."""

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
