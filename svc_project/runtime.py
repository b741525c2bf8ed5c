"""What a serving process runs besides requests, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error, connections

from accounts.changes import watcher
from accounts.keyring import keyring
from inference import captures
from inference.catalog import catalog
from inference.health_checks import check_ejected
from inference.present import VIEW, backends, current_backends
from inference.service import service as chat_service
from speech import database, present
from speech.clones.outbox import outbox
from speech.engines import EngineError, embedded
from speech.hindi import detect
from speech.models import Language
from speech.service import limiter
from speech.service import service as speech_service
from speech.voices import voices
from svc_project.lib.clock import now
from svc_project.lib.worker_views import EVERY_SECONDS, views
from svc_project.monitoring import METRICS_VIEW, own_families
from svc_project.surfaces import Receive, Send
from usage import days, partitions, shards, throttles
from usage.ledger import ledger

log = logging.getLogger(__name__)

UPKEEP_SECONDS = 600.0


class Runtime:
    """Starts with the server's lifespan, or with the first request where there is none."""

    def __init__(self) -> None:
        self._started: asyncio.Task[None] | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._beside: list[asyncio.Task[None]] = []

    async def ensure_started(self) -> None:
        """Return when everything runs; costs nothing from the second call on."""
        if self._started is None:
            self._started = asyncio.create_task(self._start())
        if not self._started.done():
            await asyncio.shield(self._started)

    async def stop(self) -> None:
        """Stop in the reverse order; what is in flight is written first."""
        if self._upkeep is not None:
            self._upkeep.cancel()
        for task in self._beside:
            task.cancel()
        views.withdraw()
        await ledger.stop()
        chat, speech = chat_service(), speech_service()
        await chat.egress.client.close()
        await chat.limiter.close()
        await outbox.stop()
        await speech.engines.close()
        await limiter().close()
        await asyncio.to_thread(database.threads.close)
        await asyncio.to_thread(chat.reconciler.close)
        await asyncio.to_thread(throttles.counters.close)
        await asyncio.to_thread(watcher.stop)
        await asyncio.to_thread(keyring.close)

    async def lifespan(self, receive: Receive, send: Send) -> None:
        """The ASGI lifespan protocol."""
        await receive()
        await self.ensure_started()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self) -> None:
        await ledger.start()
        try:
            await sync_to_async(_load_catalog, thread_sensitive=False)()
        except Error as error:
            # Serving begins all the same: the watcher loads it when the database answers.
            log.error("the catalog cannot be read: %s", type(error).__name__)
        try:
            await sync_to_async(_warm_keys, thread_sensitive=False)()
        except Error as error:
            # Nothing is lost: keys are looked up when they are used.
            log.warning("the keys in use cannot be read: %s", type(error).__name__)
        watcher.start()
        speech = speech_service()
        outbox.start(speech.engines.forget)
        try:
            await speech.engines.start()
        except EngineError as error:
            # Chat and other speech engines are served all the same; the embedded voice answers 502.
            log.error("the embedded voice does not start: %s", error)
        if voices.snapshot.has_neural:
            self._beside.append(asyncio.create_task(_start_neural()))
        self._upkeep = asyncio.create_task(self._keep_up())
        views.offer(METRICS_VIEW, own_families)
        views.offer(VIEW, backends)
        views.offer(present.VIEW, present.own_speed)
        if voices.snapshot.speaks(Language.HINDI):
            self._beside.append(asyncio.create_task(asyncio.to_thread(detect.prepare)))
        if settings.SVC_WORKERS > 1:
            self._beside.append(asyncio.create_task(_publish_views()))
        if settings.SVC_BACKEND_CHECK_SECONDS:
            egress = chat_service().egress
            self._beside.append(
                asyncio.create_task(
                    check_ejected(egress.pool, egress.client, settings.SVC_BACKEND_CHECK_SECONDS)
                )
            )

    async def _keep_up(self) -> None:
        while True:
            try:
                await sync_to_async(_upkeep, thread_sensitive=False)()
                await outbox.forget_due()
            except Error as error:
                log.warning("upkeep put off: %s", type(error).__name__)
            chat_service().egress.pool.forget_all_but({each.id for each in current_backends()})
            await asyncio.sleep(UPKEEP_SECONDS)


async def _start_neural() -> None:
    """Start the neural engine beside the first requests; without it, its voices are not served."""
    try:
        await speech_service().engines.neural.start()
    except EngineError as error:
        log.error("the neural engine does not start: %s", error)
        embedded.failed(embedded.KOKORO, str(error))
        with contextlib.suppress(Error):
            await sync_to_async(_load_voices, thread_sensitive=False)()


async def _publish_views() -> None:
    while True:
        try:
            views.publish()
        except OSError as error:
            log.warning("this worker's figures are not published: %s", error.strerror)
        await asyncio.sleep(EVERY_SECONDS)


def _load_catalog() -> None:
    try:
        catalog.load()
        voices.load()
    finally:
        connections.close_all()


def _warm_keys() -> None:
    try:
        keyring.warm()
    finally:
        connections.close_all()


def _load_voices() -> None:
    try:
        voices.load()
    finally:
        connections.close_all()


def _upkeep() -> None:
    """What time makes due: captures and counts past their retention, the ledger's next months and days."""
    try:
        captures.prune()
        throttles.keep_up(now())
        shards.merge(now())
        partitions.ensure(now())
        days.keep_up()
    finally:
        connections.close_all()


runtime = Runtime()
