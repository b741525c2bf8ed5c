"""What every Django response carries on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.urls import set_urlconf

from svc_project.lib.ids import request_id
from svc_project.surfaces import Surface


class RequestIdMiddleware:
    """Puts the server's own ``x-request-id`` on every response; an incoming one is ignored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response["x-request-id"] = request_id()
        return response


class SurfaceMiddleware:
    """Gives the speech surface its own routes and, with them, its own shape of errors."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if getattr(request, "scope", {}).get("surface") is Surface.SPEECH:
            request.urlconf = "speech.urls"
            # For what a middleware refuses, before Django has looked at the attribute.
            set_urlconf("speech.urls")
        return self.get_response(request)
