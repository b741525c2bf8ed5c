"""What every Django response carries on both surfaces."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connections
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


class ConnectionMiddleware:
    """Closes the database connections of the request's thread.

    Under ASGI every request has a thread of its own (``asgiref.sync.ThreadSensitiveContext``), so
    a connection that is kept serves nobody again; it only stays open until the garbage collector
    finds it, and a few busy readers would take every connection that the database grants. Threads
    that live on, the ledger's above all, keep theirs (``CONN_MAX_AGE``).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return self.get_response(request)
        finally:
            for connection in connections.all(initialized_only=True):
                # A caller's own transaction (a test's) is the caller's to end.
                if not connection.in_atomic_block:
                    connection.close()
