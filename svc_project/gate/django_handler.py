"""Django behind the gate."""

from __future__ import annotations

import threading
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponseBase
from django.utils.module_loading import import_string


class OneCallHandler(ASGIHandler):
    """Runs all middleware and the view of a request in one call in the request's thread.

    Django's own handler makes an asynchronous chain of the middleware and goes to the thread at each
    synchronous piece of it, nine times for a page instead of three; each way waits for the event
    loop. Nothing in this project's chain is asynchronous. It is made for the first request.
    """

    def __init__(self) -> None:
        super(ASGIHandler, self).__init__()
        self._loading = threading.Lock()

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response for ``request``."""
        return await sync_to_async(self._respond, thread_sensitive=True)(request)

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        with self._loading:
            if self._middleware_chain is None:  # type: ignore[attr-defined]  # the stubs lack it
                self.load_middleware(is_async=False)
        return self.get_response(request)


def load_pages() -> None:
    """Import the modules of all pages, for which the first request would wait otherwise.

    They are not needed to answer chats and speech, so a worker listens before it has them.
    """
    for name in settings.MIDDLEWARE:
        import_string(name)
    import_module(settings.ROOT_URLCONF)
