"""The background work of a serving process, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any

from django.conf import settings
from django.db import Error

from accounts.console import session_lookups
from accounts.keys import refusals
from accounts.login.password_links import reset_mails
from core import garbage, sealing
from core.clock import now
from core.database.threads import run_once, threads
from core.monitoring import observation, process, spans
from core.monitoring.problems import PROBLEMS_STATS
from core.monitoring.request_log import LineWriter, RequestLog
from core.monitoring.worker_stats import EVERY_SECONDS, FAILED_ENGINES, worker_stats
from core.sharing.slots import shared_slots
from inference.backends.health_checks import check_ejected
from inference.catalog.catalog import catalog
from inference.chat import captures
from inference.probe.retest import retest_due
from inference.serving import wiring as chat
from inference.serving.monitoring import STATS_NAME, backends, current_backends, is_draining
from speech.engines import EngineError, embedded
from speech.models import Language
from speech.serving import monitoring
from speech.serving import wiring as speech
from speech.text import preparation
from speech.voices.clones.mixer import mixer
from speech.voices.clones.outbox import outbox
from speech.voices.voices import voices
from svc_project.gate import caller_threads
from svc_project.gate.django_handler import load_pages
from svc_project.serving import caches
from svc_project.serving.monitoring import METRICS_STATS, own_families, problems
from svc_project.serving.schema import schema
from svc_project.surfaces import Receive, Send
from usage.console.live.hub import hub
from usage.ledger.ledger import ledger
from usage.models import partitions, shards
from usage.queries import days, speech_hours
from usage.refusals import recorder as refused_requests
from usage.refusals.recorder import recorder
from usage.verification import fill

log = logging.getLogger(__name__)

UPKEEP_SECONDS = 600.0
_HOLD_SECONDS = 1.0
_NEURAL_SECONDS = 5.0


class Runtime:
    """Starts with the server's lifespan, or with the first request where there is none."""

    def __init__(self) -> None:
        self._started: asyncio.Task[None] | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._beside: list[asyncio.Task[None]] = []

    @property
    def has_started(self) -> bool:
        """Whether everything runs."""
        return self._started is not None and self._started.done()

    async def ensure_started(self) -> None:
        """Return when everything runs."""
        if self._started is None:
            self._started = asyncio.create_task(self._start())
        if not self._started.done():
            await asyncio.shield(self._started)

    def load_the_rest(self) -> None:
        """``load_the_rest`` in a thread; called once the server listens."""
        self._run_beside(asyncio.to_thread(load_the_rest))

    async def stop(self) -> None:
        """Stop everything; requests in flight are written first."""
        if self._upkeep is not None:
            self._upkeep.cancel()
        for task in self._beside:
            task.cancel()
        worker_stats.withdraw()
        await shared_slots.close()
        await hub.close()
        await ledger.close()
        await chat.close()
        await speech.close()
        await caller_threads.close()
        await asyncio.to_thread(threads.close)
        await asyncio.to_thread(session_lookups.close)
        await asyncio.to_thread(reset_mails.close)
        refusals.listeners.clear()
        await asyncio.to_thread(recorder.close)
        await caches.close()
        while observation.observers:
            await asyncio.to_thread(observation.observers.pop().close)

    async def lifespan(self, receive: Receive, send: Send) -> None:
        """The ASGI lifespan protocol."""
        await receive()
        await self.ensure_started()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self) -> None:
        if settings.SVC_REQUEST_LOG:
            observation.observers.append(RequestLog(LineWriter(sys.stdout.fileno())))
        if spans.is_wanted(os.environ):
            # First, so that the request log has the trace's id.
            tracing = spans.start(os.environ, settings.VERSION, settings.SVC_WORKER)
            observation.observers[:0] = [tracing] if tracing is not None else []
        # Speech that comes before its engine is ready waits for it; nothing else does.
        self._run_beside(speech.start())
        await asyncio.gather(schema.check(), caches.start())
        await ledger.start()
        refusals.listeners.append(recorder.refused)
        self._run_beside(schema.watch())
        self._run_beside(process.watch_loop())
        hub.start()
        self._run_beside(_start_neural())
        shared_slots.start()
        chat.start()
        self._run_beside(_hold_slots())
        self._upkeep = asyncio.create_task(self._run_upkeep())
        _register_stats()
        hindi = voices.snapshot.speaks(Language.HINDI)
        self._run_beside(speech.service().texts.start(hindi=hindi))
        if settings.SVC_SAMPLED_FRACTION:
            models = catalog.snapshot.models.values()
            chat.service().reconciler.prepare(model.tokenizer for model in models)
        self._run_beside(_publish_stats())
        if settings.SVC_BACKEND_CHECK_SECONDS:
            egress = chat.service().egress
            self._run_beside(
                check_ejected(egress.pool, egress.client, settings.SVC_BACKEND_CHECK_SECONDS)
            )

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run background work until the stop; what ends it is logged."""
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        self._beside.append(task)

    async def _run_upkeep(self) -> None:
        while True:
            try:
                await run_once(_upkeep)
                await outbox.delete_due()
                mixer.nudge()
                await asyncio.sleep(UPKEEP_SECONDS)
                # Not at the start: a restart of many workers sends no server anything.
                await retest_due()
            except Error as error:
                log.warning("upkeep put off: %s", type(error).__name__)
                await asyncio.sleep(UPKEEP_SECONDS)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background work ended", exc_info=error)


def _register_stats() -> None:
    """Name what the other workers, and a command, are told of this one."""
    worker_stats.register(METRICS_STATS, own_families)
    worker_stats.register(STATS_NAME, backends)
    worker_stats.register(PROBLEMS_STATS, problems)
    worker_stats.register(monitoring.STATS_NAME, monitoring.own_speed)
    worker_stats.register(FAILED_ENGINES, embedded.failed)


def load_the_rest() -> None:
    """Load what only pages and texts need."""
    try:
        sealing.load()
        preparation.load()
        if not settings.SVC_PAGE_SOCKET:
            load_pages()
    except Exception:
        log.exception("pages and patterns of texts cannot be loaded")
    garbage.keep_loaded_objects()


def _neural_is_installed() -> bool:
    return embedded.problem(embedded.KOKORO, settings.SVC_NEURAL_DIR) is None


async def _start_neural() -> None:
    """Start the neural engine beside the first requests, or once it is installed and a voice wants it.

    Without it, its own voices are not served, and espeak-ng speaks those that have one there.
    """
    waited = False
    while not (voices.snapshot.wants_neural and await asyncio.to_thread(_neural_is_installed)):
        waited = True
        await asyncio.sleep(_NEURAL_SECONDS)
    if waited:
        with contextlib.suppress(Error):
            await run_once(voices.load)
    try:
        await speech.service().engines.neural.start()
        mixer.nudge()
    except EngineError as error:
        log.error("the neural engine does not start: %s", error)
        embedded.mark_failed(embedded.KOKORO, str(error))
        with contextlib.suppress(Error):
            await run_once(voices.load)


async def _hold_slots() -> None:
    """Hold slots of the catalog's backends also before their first request, for an outage of the store."""
    held = None
    while True:
        if held is not catalog.snapshot:
            held = catalog.snapshot
            chat.service().egress.pool.keep(current_backends())
        await asyncio.sleep(_HOLD_SECONDS)


async def _publish_stats() -> None:
    """Publish this worker's stats for the other workers, and for a command that waits for a drain."""
    while True:
        if settings.SVC_WORKERS > 1 or is_draining():
            worker_stats.try_to_publish()
        await asyncio.sleep(EVERY_SECONDS)


def _upkeep() -> None:
    """Delete captures and counts past their retention; prepare the ledger's next periods."""
    captures.prune()
    refused_requests.maintain(now())
    shards.merge(now())
    partitions.ensure(now())
    if fill.fill():
        log.info("outcomes and times of earlier sums were filled")
    days.sum_closed_days()
    speech_hours.sum_closed_hours()


runtime = Runtime()
