"""Builds the chat service of this process from the settings."""

from __future__ import annotations

import asyncio
from functools import cache

from django.conf import settings

from core.backends.quarantine import Quarantine
from core.limits.redis import open_limiter
from core.limits.refused_requests import RefusedRequests
from core.sharing.fair_queue import FairPool
from core.sharing.slots import shared_slots
from inference.backends.client import BackendClient
from inference.backends.health_checks import HealthChecks
from inference.backends.pool import BackendPool
from inference.backends.shared_marks import SharedMarks
from inference.backends.usage_dialects import UsageDialects
from inference.catalog.catalog import catalog
from inference.chat import captures
from inference.chat.exchange import Egress
from inference.chat.preparation import Preparation
from inference.chat.reconciliation import Reconciler
from inference.chat.service import ChatService
from usage.ledger.ledger import ledger


@cache
def shared_marks() -> SharedMarks | None:
    """Return what tells other workers of prompts; None where no others are known of."""
    if not settings.REDIS_URL:
        return None
    return SharedMarks(settings.REDIS_URL, timeout_seconds=settings.SVC_LIMIT_STORE_SECONDS)


def start() -> None:
    """Begin to hear other workers."""
    if (marks := shared_marks()) is not None:
        marks.start(service().egress.pool)


@cache
def service() -> ChatService:
    """Return the one chat service; it belongs to the event loop that first uses it."""
    # Several hosts always share a store.
    others = settings.SVC_WORKERS > 1 or bool(settings.REDIS_URL)
    pool = BackendPool(homes=others, slots=shared_slots, marks=shared_marks())
    client = BackendClient()
    quarantine = Quarantine(settings.SVC_POISON_DEATHS, settings.SVC_POISON_SECONDS)
    return ChatService(
        preparation=Preparation(
            catalog=catalog,
            quarantine=quarantine,
            refused=RefusedRequests(settings.SVC_REFUSED_REQUESTS_PER_MINUTE),
            thread=FairPool("chat-bodies"),
        ),
        limiter=open_limiter(
            settings.REDIS_URL,
            workers=settings.SVC_WORKERS,
            timeout_seconds=settings.SVC_LIMIT_STORE_SECONDS,
        ),
        egress=Egress(
            pool,
            client,
            quarantine,
            HealthChecks(pool, client),
            UsageDialects(),
            catalog,
        ),
        ledger=ledger,
        reconciler=Reconciler(),
    )


async def close() -> None:
    """Close the connections and threads of the service; its requests have ended."""
    chat = service()
    if (marks := shared_marks()) is not None:
        await marks.close()
    await chat.egress.client.close()
    await chat.limiter.close()
    await asyncio.to_thread(chat.reconciler.close)
    await asyncio.to_thread(captures.thread.close)
