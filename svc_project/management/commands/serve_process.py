"""``manage.py serve_process``: one process of ``serve``, started by its parent."""

from __future__ import annotations

import os
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.sharing import processors
from svc_project.checks import STARTING
from svc_project.serving import page_process, server, state_file
from svc_project.serving.acceptor import Counts
from svc_project.serving.lifeline import Plan, WorkerEnd
from svc_project.serving.runtime import load_the_rest


class Command(BaseCommand):
    help = "Be a worker or the page process of serve, which starts this itself."
    # Those of settings. Django's own judge the code, which is the same at every start.
    requires_system_checks = (STARTING,)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--lifeline", type=int, required=True, help="the parent's socket")
        parser.add_argument("--sockets", help="descriptors that a worker serves on")
        parser.add_argument("--keep", type=int, help="descriptor that a worker keeps to the end")
        parser.add_argument("--share", type=int, help="which share of the processors, from 0")
        parser.add_argument("--counts", type=int, help="descriptor of the workers' shared counts")
        parser.add_argument("--pages", type=int, help="descriptor to serve pages on")
        parser.add_argument("--until", type=int, help="descriptor that closes with all workers")

    def handle(self, *args: Any, **options: Any) -> None:
        line = WorkerEnd(options["lifeline"])
        if options["pages"]:
            page_process.run(socket.socket(fileno=options["pages"]), line, options["until"])
        if settings.SVC_WORKERS > 1 and not settings.REDIS_URL:
            raise CommandError(
                "--workers above 1 needs REDIS_URL: without it each worker would grant every rate "
                "limit in full. Set REDIS_URL, or serve with one worker.",
                returncode=2,
            )
        if options["share"] == 0:
            line.introduce(
                Plan(
                    workers=settings.SVC_WORKERS,
                    silence_seconds=settings.SVC_WORKER_BLOCKED_SECONDS,
                    state_file=str(settings.SVC_DATA_DIR / state_file.NAME),
                )
            )
        for descriptor in (options["keep"], options["counts"]):
            os.set_inheritable(descriptor, False)
        sockets = [socket.socket(fileno=int(number)) for number in options["sockets"].split(",")]
        for each in sockets:
            # Processes of engines would keep the address open after this worker.
            each.set_inheritable(False)
        counts = None
        if settings.SVC_WORKERS > 1:
            processors.keep_to_share(options["share"], settings.SVC_WORKERS)
            counts = Counts(options["counts"], options["share"], settings.SVC_WORKERS)
        if line.waits:
            # What its first connections would share a processor with.
            load_the_rest()
        server.run(sockets, line, counts)
