"""The chat service of this process, put together from the settings."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from inference.backends import BackendClient
from inference.catalog import catalog
from inference.chat import ChatService
from inference.exchange import Egress
from inference.health_checks import Questions
from inference.pool import BackendPool
from inference.reconciliation import Reconciler
from svc_project.lib.fair_thread import FairThread
from svc_project.lib.poison import Poison
from svc_project.lib.ratelimits_redis import open_limiter
from svc_project.lib.refused_requests import RefusedRequests
from usage.ledger import ledger


@cache
def service() -> ChatService:
    """The one chat service; belongs to the event loop that first uses it."""
    pool, client = BackendPool(), BackendClient()
    return ChatService(
        catalog=catalog,
        limiter=open_limiter(
            settings.REDIS_URL,
            workers=settings.SVC_WORKERS,
            timeout_seconds=settings.SVC_LIMIT_STORE_SECONDS,
        ),
        egress=Egress(
            pool,
            client,
            Poison(settings.SVC_POISON_DEATHS, settings.SVC_POISON_SECONDS),
            Questions(pool, client),
        ),
        ledger=ledger,
        reconciler=Reconciler(),
        refused=RefusedRequests(settings.SVC_REFUSED_REQUESTS_PER_MINUTE),
        thread=FairThread("chat-bodies"),
    )
