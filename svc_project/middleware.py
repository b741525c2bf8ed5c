"""What every Django response carries on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from svc_project.lib.ids import request_id


class RequestIdMiddleware:
    """Puts the server's own ``x-request-id`` on every response; an incoming one is ignored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response["x-request-id"] = request_id()
        return response
