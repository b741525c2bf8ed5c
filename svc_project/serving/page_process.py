"""The page process: runs Django's views for all workers of a host.

Views take the interpreter for milliseconds at a time. In a process of their own they take it from
each other, not from the event loops that answer chats and speech (docs/decisions/0016).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import NoReturn

import uvloop
from django.conf import settings
from django.db import Error

from accounts.login.password_links import reset_mails
from core import garbage
from core.database.threads import run_once, threads
from core.monitoring import process
from core.monitoring.worker_stats import EVERY_SECONDS, FAILED_ENGINES, WorkerStats, worker_stats
from core.sharing.processors import Niceness, lower_priority
from speech.engines import embedded
from speech.voices.voices import voices
from svc_project.gate.django_handler import OneCallHandler, load_pages
from svc_project.gate.page_server import PageServer
from svc_project.serving import caches
from svc_project.serving.lifeline import BEAT_SECONDS, WorkerEnd
from svc_project.serving.monitoring import METRICS_STATS

_LEARN_SECONDS = 2.0


def run(listener: socket.socket, line: WorkerEnd, workers: int) -> NoReturn:
    """Serve pages on ``listener`` until parent and workers have ended.

    They hold the other end of the pipe ``workers``. Signals to the whole group of processes change
    nothing here: while the workers drain, they still need their pages.
    """
    address = Path(listener.getsockname())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # At full priority: a machine without an idle processor would take a minute for it at a lower one.
    load_pages()
    # Threads inherit it.
    lower_priority(Niceness.LONG_WORK)
    uvloop.run(_serve(listener, line, workers))
    shutil.rmtree(address.parent, ignore_errors=True)
    # Threads that wait for a database or a mail server would keep the process from ending.
    os._exit(0)


async def _serve(listener: socket.socket, line: WorkerEnd, workers: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    os.set_blocking(workers, False)
    loop.add_reader(workers, ended.set)  # nothing is written to it, so it is readable at its end
    await caches.start()
    pages = PageServer(OneCallHandler())  # type: ignore[arg-type]  # its messages are Mappings
    server = await asyncio.start_unix_server(pages.connected, sock=listener)
    stats = WorkerStats(settings.SVC_DATA_DIR / "workers", "pages", settings.SVC_GENERATION)
    stats.register(METRICS_STATS, lambda: list(process.families()))
    beside = (_beat(line), _learn_failed_engines(), _publish(stats))
    tasks = [asyncio.create_task(each) for each in beside]
    garbage.keep_loaded_objects()
    await ended.wait()
    loop.remove_reader(workers)
    for task in tasks:
        task.cancel()
    stats.withdraw()
    server.close()
    await pages.close()
    await caches.close()
    await asyncio.to_thread(reset_mails.close)
    await asyncio.to_thread(threads.close)


async def _beat(line: WorkerEnd) -> None:
    while True:
        line.beat()
        await asyncio.sleep(BEAT_SECONDS)


async def _publish(stats: WorkerStats) -> None:
    """Publish the metrics of this process for the worker that is asked for those of all."""
    while True:
        stats.try_to_publish()
        await asyncio.sleep(EVERY_SECONDS)


async def _learn_failed_engines() -> None:
    """Drop the voices of engines that did not start in a worker; engines run only there."""
    known: set[str] = set()
    while True:
        for _, failed in worker_stats.read(FAILED_ENGINES, dict[str, str]):
            for engine in failed.keys() - known:
                embedded.mark_failed(engine, failed[engine])
                known.add(engine)
                with contextlib.suppress(Error):
                    await run_once(voices.load)
        await asyncio.sleep(_LEARN_SECONDS)
