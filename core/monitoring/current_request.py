"""The request that the running code belongs to: the log shows its id on each of its lines.

A context variable, so that tasks and threads that work for a request inherit it. What a request only
happens to start, and what then works for all (a probe of the limit store, say), runs in a context of its
own: ``without_request``.
"""

from __future__ import annotations

import contextvars
from contextvars import ContextVar
from typing import Final

_EMPTY: Final = ""
_request_id: ContextVar[str] = ContextVar("request_id", default=_EMPTY)

begin = _request_id.set
"""Let the current task work for the request of this id from now on."""

current_id = _request_id.get
"""The id of the request that the current task works for; empty for none."""


def without_request() -> contextvars.Context:
    """A context for a task that belongs to no request."""
    return contextvars.Context()
